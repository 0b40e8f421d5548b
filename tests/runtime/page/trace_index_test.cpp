// The index of steps in a run's traces, and a follower of one part of them.
#include "config/trace/trace_writer.hpp"
#include "runtime/page/trace_follower.hpp"
#include "runtime/page/trace_index.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>

#include <deque>
#include <memory>
#include <set>

using namespace troupe;
using namespace troupe::runtime;

namespace {

constexpr std::uint64_t events_of_a_step = 2'000; ///< 96 KB
constexpr std::uint64_t bytes_of_a_step
  = events_of_a_step * sizeof(trace::Event) + 5 * sizeof(trace::RecordHead);

class TraceIndexTest : public ::testing::Test {
protected:
  TraceIndexTest() : folder_(temp_.path() / "run") {
    folder_.create();
  }
  std::unique_ptr<trace::TraceWriter> writer(const std::string& name,
                                             std::uint64_t max_bytes = 0) {
    auto made = std::make_unique<trace::TraceWriter>(
      folder_.trace_folder() / name, name, 0, max_bytes);
    made->add_texts({{"device 0", trace::TrackKind::device}}, {"gen"});
    return made;
  }
  /// Writes steps as a process does, in five records each; what belongs to no
  /// step comes last.
  static void write_steps(trace::TraceWriter& writer, std::uint32_t first,
                          std::uint32_t end) {
    for (auto step = first; step < end; ++step)
      for (int part = 0; part < 5; ++part) {
        std::vector<trace::Event> events(events_of_a_step / 5);
        for (auto& event : events)
          event.step = step;
        if (part % 2 == 0)
          events.back().step = 0;
        writer.write(events, 0);
      }
  }
  /// Returns how many events of each step a follower of the window returns.
  std::map<std::uint32_t, std::uint64_t> steps_in(const TraceWindow& window) {
    TraceFollower follower(folder_, window);
    const auto names = follower.find_files();
    std::vector<trace::TraceFile> files(names.size());
    std::map<std::uint32_t, std::uint64_t> steps;
    for (int looks = 0; looks == 0 || follower.unread_bytes() > 0; ++looks) {
      EXPECT_LT(looks, 10'000);
      for (const auto& chunk : follower.read(1 << 20))
        trace::append_trace(files[chunk.file], chunk.bytes, "test");
    }
    for (const auto& file : files)
      for (const auto& event : file.events)
        ++steps[event.step];
    EXPECT_THAT(follower.read(1 << 20), ::testing::IsEmpty());
    return steps;
  }
  void expect_whole(const TraceWindow& window, std::uint64_t traces) {
    auto steps = steps_in(window);
    const auto most = (window.last_step - window.first_step + 1 + 10) * traces;
    std::uint64_t events = 0;
    for (const auto& [step, count] : steps)
      events += count;
    EXPECT_LE(events, most * events_of_a_step) << "and little else";
    for (auto step = std::max(1U, window.first_step); step <= window.last_step;
         ++step)
      EXPECT_EQ(steps[step], traces * (events_of_a_step - 3)) << step;
  }

  test::TempFolder temp_;
  RunFolder folder_;
};

TEST_F(TraceIndexTest, AWindowHasAllEventsOfItsSteps) {
  const auto master = writer("master_01.events");
  const auto worker = writer("worker_00_01.events");
  write_steps(*master, 0, 300);
  write_steps(*worker, 0, 300);
  TraceIndex index(folder_);
  index.update();
  for (const std::uint32_t step : {0U, 1U, 57U, 150U, 298U, 299U}) {
    const auto window = index.around(step, 40 * bytes_of_a_step);
    EXPECT_LE(window.first_step, step);
    EXPECT_GE(window.last_step, step);
    EXPECT_GE(window.last_step - window.first_step, 4U);
    EXPECT_LE(window.last_step - window.first_step, 20U);
    expect_whole(window, 2);
  }
}

TEST_F(TraceIndexTest, AStepThatIsLargerThanTheWindowIsReturnedAsAWhole) {
  const auto master = writer("master_01.events");
  write_steps(*master, 0, 30);
  TraceIndex index(folder_);
  index.update();
  const auto window = index.around(10, 1);
  EXPECT_EQ(window.first_step, 10U);
  EXPECT_EQ(window.last_step, 10U);
  expect_whole(window, 1);
}

TEST_F(TraceIndexTest, StepsThatAreWrittenLaterAreFoundAfterAnUpdate) {
  const auto master = writer("master_01.events");
  TraceIndex index(folder_);
  index.update();
  EXPECT_TRUE(index.around(7, 0).parts.empty());
  for (std::uint32_t step = 0; step < 60; step += 20) {
    write_steps(*master, step, step + 20);
    index.update();
    expect_whole(index.around(step + 10, 10 * bytes_of_a_step), 1);
  }
}

TEST_F(TraceIndexTest, AWindowMayCrossSegmentsOfAFullTrace) {
  const auto master = writer("master_01.events", 100 * bytes_of_a_step);
  write_steps(*master, 0, 50);
  TraceIndex index(folder_);
  index.update();
  write_steps(*master, 50, 300);
  index.update();
  const auto traces = trace::list_traces(folder_.trace_folder());
  ASSERT_GE(traces.at(0).segments.size(), 4U);
  EXPECT_GT(traces.at(0).segments.front().number, 1U);
  const auto window = index.around(260, 60 * bytes_of_a_step);
  EXPECT_LT(window.parts.at("master_01.events").segment,
            window.parts.at("master_01.events").end_segment);
  expect_whole(window, 1);
  EXPECT_TRUE(steps_in(index.around(10, bytes_of_a_step)).contains(10) == false)
    << "its segment was removed";
}

} // namespace
