#include "config/base/error.hpp"
#include "config/trace/trace.hpp"
#include "config/trace/trace_file.hpp"
#include "config/trace/trace_ring.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

namespace {

namespace trace = troupe::trace;
using trace::Kind;

class Trace : public ::testing::Test {
protected:
  Trace() {
    file_ = folder_ / "trace" / "worker_01.events";
  }
  ~Trace() override {
    trace::stop();
  }
  std::uint64_t bytes_on_disk() const {
    std::uint64_t bytes = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(file_.parent_path()))
      bytes += entry.file_size();
    return bytes;
  }
  trace::TraceFile read_all() const {
    return trace::read_trace(trace::list_traces(file_.parent_path()).at(0));
  }

  troupe::support::TempFolder folder_;
  std::filesystem::path file_;
  trace::Track track_ = trace::track("actor@0", trace::TrackKind::device);
  trace::Name name_ = trace::name("decode");
};

TEST_F(Trace, NothingIsRecordedBeforeStart) {
  EXPECT_FALSE(trace::enabled());
  trace::begin(track_, name_);
  trace::start(file_, "worker 1", 1);
  trace::stop();
  const auto read = trace::read_trace(file_);
  EXPECT_TRUE(read.events.empty());
  EXPECT_TRUE(read.complete);
}

TEST_F(Trace, EventsReadBackWithNamesAndNumbers) {
  trace::start(file_, "worker 1", 1);
  {
    trace::Span span(track_, name_, 7, 99);
    trace::counter(track_, trace::name("tokens"), 0.5);
  }
  const auto flow = trace::next_flow();
  trace::send(track_, name_, flow, 7, 4096);
  trace::receive(track_, name_, flow, 7);
  trace::spawn(track_, name_);
  trace::exit(track_, name_);
  trace::failure(track_, name_);
  trace::stop();

  const auto read = trace::read_trace(file_);
  EXPECT_EQ(read.process_name, "worker 1");
  EXPECT_EQ(read.process_number, 1u);
  EXPECT_EQ(read.dropped, 0u);
  ASSERT_EQ(read.events.size(), 8u);
  const std::vector<Kind> kinds
    = {Kind::begin,   Kind::counter, Kind::end,  Kind::send,
       Kind::receive, Kind::spawn,   Kind::exit, Kind::failure};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto& event = read.events[i];
    EXPECT_EQ(event.kind, kinds[i]);
    EXPECT_EQ(read.tracks.at(static_cast<std::size_t>(event.track)).name,
              "actor@0");
    EXPECT_GE(event.time_ns, read.start_monotonic_ns);
  }
  EXPECT_EQ(read.events[0].step, 7u);
  EXPECT_EQ(read.events[0].amount, 99u);
  EXPECT_EQ(read.names.at(static_cast<std::size_t>(read.events[1].name)),
            "tokens");
  EXPECT_EQ(std::bit_cast<double>(read.events[1].amount), 0.5);
  EXPECT_EQ(read.events[3].flow, read.events[4].flow);
  EXPECT_EQ(read.events[3].flow >> 40, 1u);
  EXPECT_EQ(read.tracks.at(static_cast<std::size_t>(track_)).kind,
            trace::TrackKind::device);
}

TEST_F(Trace, EqualTextsShareAnId) {
  EXPECT_EQ(trace::name("decode"), name_);
  EXPECT_NE(trace::name("prefill"), name_);
  EXPECT_EQ(trace::track("actor@0", trace::TrackKind::device), track_);
  EXPECT_NE(trace::track("actor@0", trace::TrackKind::actor), track_);
}

TEST_F(Trace, ThreadsThatEndLoseNothing) {
  trace::start(file_, "worker 1", 1);
  constexpr int num_threads = 50;
  constexpr int num_events = 200;
  for (int i = 0; i < num_threads; ++i)
    std::thread([&] {
      for (int k = 0; k < num_events; ++k)
        trace::begin(track_, name_, static_cast<std::uint32_t>(k));
    }).join();
  trace::stop();
  const auto read = trace::read_trace(file_);
  EXPECT_EQ(read.events.size(), std::size_t{num_threads} * num_events);
  std::set<std::uint32_t> threads;
  for (const auto& event : read.events)
    threads.insert(event.thread);
  EXPECT_EQ(threads.size(), std::size_t{num_threads});
}

TEST_F(Trace, EveryEventIsInTheFileOrCountedAsDropped) {
  trace::start(file_, "worker 1", 1);
  constexpr std::uint64_t num_events = 400'000;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      for (std::uint64_t k = 0; k < num_events; ++k)
        trace::begin(track_, name_, 0, k);
    });
  for (auto& thread : threads)
    thread.join();
  trace::stop();
  const auto read = trace::read_trace(file_);
  EXPECT_EQ(read.events.size() + read.dropped, 2 * num_events);
  // Events of one thread are in the order of recording.
  std::map<std::uint32_t, std::uint64_t> next;
  for (const auto& event : read.events) {
    EXPECT_GE(event.amount + 1, next[event.thread]);
    next[event.thread] = event.amount + 1;
  }
}

TEST_F(Trace, FullRingDropsAndCounts) {
  trace::Ring ring(1);
  std::uint64_t lost = 0;
  for (std::size_t i = 0; i < troupe::defaults::trace_ring_events + 5; ++i)
    lost += ring.push({}) == trace::Ring::lost;
  EXPECT_EQ(lost, 5u);
  EXPECT_EQ(ring.dropped, 5u);
  std::vector<trace::Event> events;
  ring.take_all(events);
  EXPECT_EQ(events.size(), troupe::defaults::trace_ring_events);
  EXPECT_EQ(ring.push({}), trace::Ring::stored);
}

TEST_F(Trace, TheFileOfAKilledProcessReadsToItsLastWholeEvent) {
  trace::start(file_, "worker 1", 1);
  for (int i = 0; i < 100; ++i)
    trace::begin(track_, name_);
  trace::flush();
  const auto now = trace::read_trace(file_); // as a killed process leaves it
  EXPECT_EQ(now.events.size(), 100u);
  EXPECT_FALSE(now.complete);
  const auto bytes = std::filesystem::file_size(file_);
  for (std::uint64_t cut = 1; cut < 100; ++cut) {
    const auto copy = folder_ / "cut.events";
    std::filesystem::copy_file(
      file_, copy, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(copy, bytes - cut);
    EXPECT_EQ(trace::read_trace(copy).events.size(), 100 - (cut + 47) / 48);
  }
}

TEST_F(Trace, AFullTraceKeepsTheNewestStepsAndTheirStart) {
  trace::start(file_, "worker 1", 1, 1 << 14);
  constexpr std::uint32_t num_steps = 400;
  for (std::uint32_t step = 0; step < num_steps; ++step) {
    for (int i = 0; i < 10; ++i)
      trace::begin(track_, name_, step);
    trace::flush();
  }
  trace::stop();
  EXPECT_LE(bytes_on_disk(), 1u << 14);
  const auto read = read_all();
  EXPECT_TRUE(read.complete);
  EXPECT_EQ(read.dropped, 0u);
  EXPECT_EQ(read.events.size() + read.removed.count, num_steps * 10);
  EXPECT_GT(read.events.size(), (1u << 14) * 5 / 8 / sizeof(trace::Event));
  EXPECT_EQ(read.events.back().step, num_steps - 1);
  std::map<std::uint32_t, int> events_of;
  for (const auto& event : read.events)
    ++events_of[event.step];
  const auto whole_from = read.removed.whole_from();
  EXPECT_GT(whole_from, 0u);
  for (auto step = whole_from; step < num_steps; ++step)
    EXPECT_EQ(events_of[step], 10) << "step " << step;
  for (std::uint32_t step = 0; step + 1 < whole_from; ++step)
    EXPECT_EQ(events_of[step], 0) << "step " << step;
}

TEST_F(Trace, ABurstLargerThanTheLimitKeepsItsNewestEvents) {
  trace::start(file_, "worker 1", 1, 4096);
  for (std::uint64_t i = 0; i < 1000; ++i)
    trace::begin(track_, name_, 0, i);
  trace::stop();
  EXPECT_LE(bytes_on_disk(), 4096u);
  const auto read = read_all();
  EXPECT_EQ(read.events.size() + read.removed.count, 1000u);
  EXPECT_GT(read.events.size(), 10u);
  EXPECT_EQ(read.events.back().amount, 999u);
}

TEST_F(Trace, EverySegmentHasAllNamesAndTracks) {
  trace::start(file_, "worker 1", 1, 4096);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    trace::begin(track_, name_, 0, i);
    if (i == 900)
      trace::begin(trace::track("late", trace::TrackKind::actor),
                   trace::name("late"));
  }
  trace::stop();
  const auto all = trace::list_traces(file_.parent_path());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].name, "worker_01.events");
  EXPECT_GT(all[0].segments.front().number, 1u);
  for (const auto& segment : all[0].segments) {
    const auto read = trace::read_trace(segment.path);
    EXPECT_EQ(read.process_name, "worker 1");
    for (const auto& event : read.events)
      EXPECT_LT(static_cast<std::size_t>(event.name), read.names.size());
  }
  EXPECT_THAT(read_all().names, ::testing::Contains("late"));
}

TEST_F(Trace, ASegmentThatAKilledProcessDidNotBeginIsLeftOut) {
  trace::start(file_, "worker 1", 1);
  trace::begin(track_, name_);
  trace::stop();
  std::ofstream(trace::segment_path(file_, 2)) << "TROU";
  EXPECT_EQ(read_all().events.size(), 1u);
  EXPECT_TRUE(trace::has_begun(trace::list_traces(file_.parent_path()).at(0)));
  std::filesystem::resize_file(file_, 0);
  EXPECT_FALSE(trace::has_begun(trace::list_traces(file_.parent_path()).at(0)));
  EXPECT_THROW(read_all(), troupe::ConfigError);
}

TEST_F(Trace, EventsBeforeAMissingSegmentAreDiscarded) {
  trace::start(file_, "worker 1", 1, 4096);
  for (std::uint32_t i = 0; i < 60; ++i)
    trace::begin(track_, name_, i);
  trace::stop();
  const auto all = trace::list_traces(file_.parent_path()).at(0);
  ASSERT_GE(all.segments.size(), 3u);
  std::filesystem::remove(all.segments[1].path);
  const auto read = read_all();
  EXPECT_EQ(read.events.size() + read.removed.count, 60u);
  EXPECT_EQ(read.events.front().step, read.removed.whole_from());
}

TEST_F(Trace, ATraceOfTheSameNameReplacesAllOldSegments) {
  trace::start(file_, "worker 1", 1, 4096);
  for (int i = 0; i < 1000; ++i)
    trace::begin(track_, name_);
  trace::stop();
  trace::start(file_, "worker 1", 1, 4096);
  trace::begin(track_, name_);
  trace::stop();
  EXPECT_EQ(read_all().events.size(), 1u);
  EXPECT_EQ(read_all().removed.count, 0u);
}

TEST_F(Trace, AnotherRunOfTheProcessStartsAFreshFile) {
  trace::start(file_, "worker 1", 1);
  trace::begin(track_, name_);
  trace::stop();
  trace::stop(); // a second start does nothing
  trace::start(file_, "worker 2", 2);
  trace::end(track_, name_);
  trace::stop();
  const auto read = trace::read_trace(file_);
  ASSERT_EQ(read.events.size(), 1u);
  EXPECT_EQ(read.events[0].kind, Kind::end);
  EXPECT_EQ(read.process_name, "worker 2");
}

TEST_F(Trace, UnwritableFileIsAFailure) {
  EXPECT_THROW(trace::start("/proc/no/such.events", "w", 1),
               troupe::FailureError);
  EXPECT_FALSE(trace::enabled());
}

TEST_F(Trace, DamagedFilesAreNamed) {
  const auto file = folder_ / "bad.events";
  auto error = [&](std::string_view bytes) -> std::string {
    std::ofstream(file, std::ios::binary) << bytes;
    try {
      trace::read_trace(file);
    } catch (const troupe::ConfigError& caught) {
      return caught.what();
    }
    return "no error";
  };
  EXPECT_THAT(error("{\"traceEvents\": []}"),
              ::testing::HasSubstr("expected a trace file of this version"));
  EXPECT_THAT(error(""), ::testing::HasSubstr("of this version"));
  using namespace std::string_view_literals;
  EXPECT_THAT(error("TROUPEv1\x09\0\0\0\0\0\0\0"sv),
              ::testing::HasSubstr("damaged"));
  // a length far beyond the file is a truncated end and allocates nothing
  EXPECT_EQ(error("TROUPEv1\x03\0\0\0\xff\xff\xff\xff"sv), "no error");
  EXPECT_THROW(trace::read_trace(folder_ / "none"), troupe::ConfigError);
}

} // namespace
