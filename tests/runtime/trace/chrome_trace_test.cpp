// I7: every wait and message shows up; arrows have two ends inside slices.
#include "actors/protocol/traced.hpp"
#include "config/base/error.hpp"
#include "runtime/trace/chrome_trace.hpp"
#include "runtime/trace/merged_trace.hpp"
#include "runtime/trace/trace_summary.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <bit>

using namespace troupe;
using namespace troupe::runtime;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using trace::Kind;
using troupe::test::TempFolder;
using troupe::test::write_text;

namespace {

constexpr std::int64_t us = 1000;

/// A process with one actor (track 0) and one device (track 1).
trace::TraceFile traced_process(std::uint32_t number) {
  trace::TraceFile file;
  file.process_name = number == 0 ? "master" : "worker 0";
  file.process_number = number;
  file.pid = 100 + number;
  file.tracks = {{"actor \"a\"", trace::TrackKind::actor},
                 {"device 0", trace::TrackKind::device}};
  file.names = {"handle", "run", "actor_gen", "actor_train", "tokens", "fetch"};
  return file;
}

trace::Event traced(Kind kind, std::int64_t time_us, std::uint32_t track,
                    std::uint32_t name, std::uint64_t flow = 0,
                    std::uint64_t amount = 0, std::uint32_t step = 0) {
  trace::Event event;
  event.kind = kind;
  event.time_ns = time_us * us;
  event.track = trace::Track{track};
  event.name = trace::Name{name};
  event.flow = flow;
  event.amount = amount;
  event.step = step;
  return event;
}

/// The master sends a request inside a slice, the worker runs a step and
/// replies outside of any slice; one message never arrives, one was never sent.
std::vector<trace::TraceFile> small_run() {
  auto master = traced_process(0);
  master.events = {
    traced(Kind::begin, 10, 0, 0),       traced(Kind::send, 12, 0, 1, 7, 256),
    traced(Kind::send, 13, 0, 1, 8),     traced(Kind::end, 20, 0, 0),
    traced(Kind::receive, 200, 0, 1, 9),
  };
  auto worker = traced_process(1);
  worker.events = {
    traced(Kind::begin, 30, 0, 0),
    traced(Kind::receive, 31, 0, 1, 7),
    traced(Kind::end, 35, 0, 0),
    traced(Kind::begin, 40, 1, 2, 0, 0, 3),
    traced(Kind::begin, 50, 1, 4, 0, 0, 3),
    traced(Kind::end, 60, 1, 4),
    traced(Kind::counter, 61, 1, 4, 0, std::bit_cast<std::uint64_t>(2.5)),
    traced(Kind::end, 90, 1, 2),
    traced(Kind::begin, 100, 1, 3, 0, 0, 3),
    traced(Kind::end, 180, 1, 3),
    traced(Kind::send, 190, 0, 1, 9, 64),
    traced(Kind::receive, 195, 0, 1, 10),
  };
  return {master, worker};
}

} // namespace

TEST(MergedTrace, ArrowsWithALostEndAreCountedButNotDrawn) {
  const auto merged = merge_traces(small_run());
  ASSERT_EQ(merged.arrows.size(), 2u);
  EXPECT_EQ(merged.unmatched_arrows, 2u);
  EXPECT_EQ(merged.arrows[0].bytes, 256u);
  EXPECT_EQ(merged.arrows[0].to.where, (TrackRef{1, 0}));
  EXPECT_EQ(merged.begin_ns, 10 * us);
}

TEST(MergedTrace, AttemptsThatReuseFlowIdsKeepTheirOwnArrows) {
  auto file = traced_process(0);
  file.events
    = {traced(Kind::send, 10, 0, 1, 7), traced(Kind::receive, 11, 0, 1, 7),
       traced(Kind::send, 20, 0, 1, 7), traced(Kind::receive, 21, 0, 1, 7)};
  const auto merged = merge_traces({file});
  ASSERT_EQ(merged.arrows.size(), 2u);
  EXPECT_EQ(merged.arrows[1].from.time_ns, 20 * us);
  EXPECT_EQ(merged.unmatched_arrows, 0u);
}

TEST(MergedTrace, SpansOfAKilledProcessEndWithItsLastEvent) {
  auto file = traced_process(0);
  file.events = {traced(Kind::begin, 10, 1, 2), traced(Kind::begin, 20, 1, 3),
                 traced(Kind::counter, 70, 0, 4)};
  const auto merged = merge_traces({file});
  ASSERT_EQ(merged.slices.size(), 2u);
  for (const auto& slice : merged.slices) {
    EXPECT_EQ(slice.end_ns, 70 * us);
    EXPECT_TRUE(slice.unfinished);
  }
}

TEST(MergedTrace, HostsWithOtherClocksAreAlignedWithinTheReportedError) {
  auto files = small_run();
  for (auto& event : files[1].events)
    event.time_ns += 5'000'000'000;
  files[1].start_monotonic_ns = 5'000'000'000;
  const auto merged = merge_traces(files);
  ASSERT_EQ(merged.arrows.size(), 2u);
  // one message took 19 us, one 10 us in the other direction
  EXPECT_EQ(merged.processes.at(1).clock_error_ns, 14'500);
  EXPECT_NEAR(static_cast<double>(merged.arrows[0].to.time_ns), 31. * us,
              14'500);
}

TEST(ChromeTrace, EveryArrowHasBothEndsInsideSlices) {
  const TempFolder temp;
  const auto path = temp.path() / "trace.json";
  write_chrome_trace(merge_traces(small_run()), path);
  const auto check = check_chrome_trace(path);
  EXPECT_THAT(check.problems, ElementsAre());
  EXPECT_EQ(check.num_arrows, 2u);
  EXPECT_EQ(check.num_slices, 2u + 3u + 3u); // spans, tasks, message slices
}

TEST(ChromeTrace, NamesATrackForEachActorAndDevice) {
  const TempFolder temp;
  const auto path = temp.path() / "trace.json";
  write_chrome_trace(merge_traces(small_run()), path);
  const auto document = nlohmann::json::parse(test::read_text(path));
  std::vector<std::string> tracks;
  for (const auto& event : document["traceEvents"])
    if (event["name"] == "thread_name")
      tracks.push_back(event["args"]["name"]);
  EXPECT_THAT(
    tracks, ElementsAre("actor \"a\"", "device 0", "actor \"a\"", "device 0"));
}

TEST(ChromeTrace, TheCheckFindsArrowsWithoutASlice) {
  const TempFolder temp;
  const auto path = temp.path() / "trace.json";
  write_text(path, R"({"traceEvents":[
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":10,"dur":5},
    {"ph":"X","name":"b","pid":1,"tid":1,"ts":12,"dur":9},
    {"ph":"s","id":1,"pid":1,"tid":1,"ts":11},
    {"ph":"f","id":1,"pid":1,"tid":2,"ts":12},
    {"ph":"s","id":2,"pid":1,"tid":1,"ts":11}]})");
  const auto check = check_chrome_trace(path);
  EXPECT_EQ(check.num_problems, 3u);
  EXPECT_THAT(check.problems, Contains(HasSubstr("its end is in no slice")));
  EXPECT_THAT(check.problems, Contains(HasSubstr("1 starts, 0 ends")));
  EXPECT_THAT(check.problems, Contains(HasSubstr("overlaps")));
  write_text(path, "no json");
  EXPECT_THROW(check_chrome_trace(path), ConfigError);
}

TEST(TraceSummary, TheCriticalPathFollowsTheDataflowNotTheClock) {
  auto worker = traced_process(1);
  worker.tracks.push_back({"host", trace::TrackKind::device});
  worker.names.insert(worker.names.end(), {"advantages", "metrics", "record"});
  const auto task = [&](std::uint32_t name, std::uint32_t track,
                        std::int64_t from_us, std::int64_t to_us) {
    worker.events.push_back(traced(Kind::begin, from_us, track, name));
    worker.events.push_back(traced(Kind::end, to_us, track, name));
  };
  task(2, 1, 10, 50);   // actor_gen
  task(6, 2, 40, 60);   // advantages, which starts with the first samples
  task(7, 2, 61, 70);   // metrics: the last to end before training starts
  task(8, 2, 71, 80);   // record, whose call is not of the workflow
  task(3, 1, 81, 180);  // actor_train
  task(8, 2, 190, 200); // after the step's last call
  const Causes causes{{"move", {}},
                      {"actor_gen", {"move"}},
                      {"advantages", {"actor_gen"}},
                      {"unseen", {"advantages"}}, // left no trace
                      {"metrics", {"actor_gen"}},
                      {"actor_train", {"unseen", "actor_gen"}}};
  const auto merged = merge_traces({worker});
  EXPECT_THAT(summarise(merged, causes).critical_path,
              ElementsAre("actor_gen", "advantages", "actor_train"));
  EXPECT_THAT(summarise(merged, {}).critical_path, ElementsAre());
}

TEST(TraceSummary, IdleTimeWhileAShardFetchesRowsWaitsForBytes) {
  auto master = traced_process(0);
  auto worker = traced_process(1);
  worker.tracks.push_back({"shard actor@home/0", trace::TrackKind::actor});
  worker.tracks.push_back({"shard actor@home/1", trace::TrackKind::actor});
  const auto response = actors::reply_flow(7);
  master.events = {traced(Kind::send, 45, 0, 5, 7),
                   traced(Kind::receive, 85, 0, 0, response),
                   traced(Kind::send, 40, 0, 5, 8),
                   traced(Kind::receive, 99, 0, 0, actors::reply_flow(8))};
  worker.events = {traced(Kind::begin, 10, 1, 2),
                   traced(Kind::end, 40, 1, 2),
                   traced(Kind::receive, 41, 3, 5, 8), // another device's
                   traced(Kind::receive, 50, 2, 5, 7),
                   traced(Kind::send, 80, 2, 0, response),
                   traced(Kind::send, 98, 3, 0, actors::reply_flow(8)),
                   traced(Kind::begin, 100, 1, 3),
                   traced(Kind::end, 180, 1, 3)};
  const auto summary = summarise(merge_traces({master, worker}), {});
  EXPECT_NEAR(summary.idle_s.at("bytes"), 30e-6, 1e-12);
  EXPECT_NEAR(summary.idle_s.at("dependency"), 30e-6, 1e-12);
}

TEST(TraceSummary, FilesWrittenDuringLaterStepsLengthenNoStep) {
  auto worker = traced_process(1);
  worker.tracks.push_back({"writer 0", trace::TrackKind::device});
  worker.names.push_back("write");
  const auto task
    = [&](std::uint32_t name, std::uint32_t track, std::int64_t from_us,
          std::int64_t to_us, std::uint32_t step) {
        worker.events.push_back(
          traced(Kind::begin, from_us, track, name, 0, 0, step));
        worker.events.push_back(traced(Kind::end, to_us, track, name));
      };
  for (std::uint32_t step = 0; step < 5; ++step)
    task(3, 1, 100 * step, 100 * step + 100, step);
  task(6, 2, 200, 290, 1); // of step 2, during step 3
  task(6, 2, 400, 470, 3);
  const auto summary = summarise(merge_traces({worker}), {});
  EXPECT_DOUBLE_EQ(summary.step_s, 100e-6);
  EXPECT_DOUBLE_EQ(summary.tasks.at("write").step_s, 90e-6);
}

TEST(TraceSummary, StepsRemovedFromAFullTraceAreNotCounted) {
  auto files = small_run();
  for (std::uint32_t step = 0; step < 6; ++step) {
    files[1].events.push_back(
      traced(Kind::begin, 1000 + 100 * step, 1, 2, 0, 0, step));
    files[1].events.push_back(traced(Kind::end, 1050 + 100 * step, 1, 2));
  }
  files[0].removed = {7, 2}; // the master's part of steps 0 to 2
  const auto merged = merge_traces(files);
  EXPECT_EQ(merged.unmatched_arrows, 0u) << "their other ends are not lost";
  const auto summary = summarise(merged, {});
  EXPECT_EQ(summary.num_steps, 3u);
  EXPECT_THAT(summary_text(summary),
              HasSubstr("complete from step 4 on: 7 older events"));
  const auto json = nlohmann::json::parse(summary_json(summary));
  EXPECT_EQ(json["complete_from_step"], 4);
  EXPECT_EQ(json["removed_events"], 7);
}

TEST(TraceSummary, ReportsStepPathIdleTimeAndMessages) {
  const auto summary
    = summarise(merge_traces(small_run()),
                {{"actor_gen", {}}, {"actor_train", {"actor_gen"}}});
  EXPECT_EQ(summary.num_steps, 1u);
  EXPECT_DOUBLE_EQ(summary.step_s, 140e-6);
  EXPECT_THAT(summary.critical_path, ElementsAre("actor_gen", "actor_train"));
  EXPECT_NEAR(summary.idle_s.at("dependency"), 10e-6, 1e-12);
  EXPECT_EQ(summary.slowest_device, "device 0");
  EXPECT_NEAR(summary.tasks.at("actor_gen").step_s, 50e-6, 1e-12);
  EXPECT_NEAR(summary.tasks.at("actor_train").wait_s, 10e-6, 1e-12);
  EXPECT_EQ(summary.messages.at("run").count, 2u);
  EXPECT_EQ(summary.messages.at("run").bytes, 320u);
  const auto json = nlohmann::json::parse(summary_json(summary));
  for (const char* key : {"step_s", "critical_path", "idle", "slowest",
                          "messages", "unmatched_arrows", "dropped_events"})
    EXPECT_TRUE(json.contains(key)) << key;
}
