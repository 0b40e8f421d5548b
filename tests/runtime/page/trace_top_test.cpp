#include "config/trace/trace_writer.hpp"
#include "runtime/page/trace_top.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace troupe::runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using trace::Event;
using trace::Kind;
using troupe::test::TempFolder;

constexpr std::int64_t ms = 1'000'000;

Event event(Kind kind, std::int64_t time_ms, std::uint32_t track,
            std::uint32_t name, std::uint64_t flow = 0,
            std::uint32_t step = 0) {
  Event made;
  made.kind = kind;
  made.time_ns = time_ms * ms;
  made.track = trace::Track{track};
  made.name = trace::Name{name};
  made.flow = flow;
  made.step = step;
  return made;
}

/// A trace in which device 0 worked half of 10 s and trains since 9.5 s; of
/// three messages two arrived, after 3 ms and 40 ms.
trace::TraceFile watched() {
  trace::TraceFile file;
  file.process_name = "worker 0";
  file.tracks = {{"call a", trace::TrackKind::actor},
                 {"device 0", trace::TrackKind::device}};
  file.names = {"run", "actor_gen", "actor_train"};
  file.events = {
    event(Kind::send, 0, 0, 0, 1),         event(Kind::receive, 3, 0, 0, 1),
    event(Kind::begin, 1000, 1, 1, 0, 4),  event(Kind::end, 5500, 1, 1),
    event(Kind::send, 9000, 0, 0, 2, 4),   event(Kind::receive, 9040, 0, 0, 2),
    event(Kind::begin, 9500, 1, 2, 0, 4),  event(Kind::send, 9600, 0, 0, 3),
    event(Kind::begin, 10000, 0, 0, 0, 4), event(Kind::end, 10000, 0, 0)};
  return file;
}

TEST(TraceTopView, ShowsTasksAndBusySharesOfDevices) {
  const auto view = make_top({watched()}, 10);
  ASSERT_EQ(view.devices.size(), 1u);
  EXPECT_EQ(view.devices[0].name, "device 0");
  EXPECT_EQ(view.devices[0].task, "actor_train");
  EXPECT_EQ(view.devices[0].step, 4u);
  EXPECT_NEAR(view.devices[0].running_s, 0.5, 1e-9);
  EXPECT_NEAR(view.devices[0].busy_share, 0.5, 1e-9);
  EXPECT_NEAR(make_top({watched()}, 1).devices[0].busy_share, 0.5, 1e-9)
    << "half of the last second";
}

TEST(TraceTopView, CountsMessagesUnderWayAndNamesTheSlowest) {
  const auto view = make_top({watched()}, 10);
  ASSERT_EQ(view.queues.size(), 1u);
  EXPECT_EQ(view.queues[0].message, "run");
  EXPECT_EQ(view.queues[0].count, 1u);
  EXPECT_NEAR(view.queues[0].oldest_s, 0.4, 1e-9);
  ASSERT_EQ(view.slowest.size(), 2u);
  EXPECT_NEAR(view.slowest[0].wait_ms, 40, 1e-9);
  EXPECT_EQ(view.slowest[0].from, "call a");
}

TEST(TraceTopView, ForgettingKeepsOpenSpans) {
  auto file = watched();
  forget_before(file, 9600 * ms);
  EXPECT_EQ(file.events.front().name, trace::Name{2});
  const auto view = make_top({file}, 10);
  EXPECT_EQ(view.devices[0].task, "actor_train");
  EXPECT_NEAR(view.devices[0].running_s, 0.5, 1e-9);
}

TEST(TraceTopView, AnEmptyTraceShowsNothing) {
  EXPECT_TRUE(make_top({}, 10).devices.empty());
  EXPECT_THAT(top_text({}, {}), HasSubstr("none"));
}

TEST(TraceTopView, TextAndJsonAgree) {
  const auto view = make_top({watched()}, 10);
  const RunStatus status{.state = "running", .step = 4, .steps = 9};
  const auto text = top_text(view, status);
  EXPECT_THAT(text, HasSubstr("running, step 4 of 9"));
  EXPECT_THAT(text, HasSubstr("actor_train of step 5"));
  EXPECT_THAT(text, HasSubstr("50 %"));
  const auto json = nlohmann::json::parse(top_json(view, status));
  EXPECT_EQ(json["devices"][0]["task"], "actor_train");
  EXPECT_EQ(json["devices"][0]["step"], 5);
  EXPECT_EQ(json["queues"][0]["count"], 1);
}

TEST(TraceTopView, TasksHaveTheColoursOfTheirKindsOfCall) {
  const auto view = make_top({watched()}, 10);
  EXPECT_THAT(top_text(view, {}), Not(HasSubstr("\033")));
  EXPECT_THAT(top_text(view, {}, {{"actor_train", "train"}}),
              HasSubstr("\033[38;5;172mactor_train\033[0m of step 5"));
  EXPECT_THAT(top_text(view, {}, {{"actor_gen", "generate"}}),
              Not(HasSubstr("\033")));
}

TEST(TraceTop, FollowsFilesAsTheyGrow) {
  const TempFolder temp;
  const RunFolder folder(temp.path() / "run");
  folder.create();
  trace::TraceWriter writer(folder.trace_folder() / "worker_00_01.events",
                            "worker 0", 1, 0);
  writer.add_texts({{"call a", trace::TrackKind::actor},
                    {"device 0", trace::TrackKind::device}},
                   {"run", "actor_gen"});
  writer.write({event(Kind::begin, 1, 1, 1), event(Kind::send, 5, 0, 0, 1)}, 0);
  TraceTop top(folder);
  EXPECT_EQ(top.look().devices.at(0).task, "actor_gen");
  writer.write({event(Kind::end, 9, 1, 1), event(Kind::receive, 11, 0, 0, 1)},
               0);
  const auto view = top.look();
  EXPECT_EQ(view.devices.at(0).task, "");
  EXPECT_NEAR(view.devices.at(0).busy_share, 0.8, 0.01);
  EXPECT_TRUE(view.queues.empty());
}

} // namespace
} // namespace troupe::runtime
