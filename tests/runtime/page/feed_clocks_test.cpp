// Offsets of clocks as the page is sent them: what changed, never what it has.
#include "config/trace/trace_writer.hpp"
#include "runtime/page/feed_clocks.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cstring>
#include <string>

using namespace troupe;
using namespace troupe::runtime;
using nlohmann::json;

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t one_s = 1'000 * ms;
constexpr std::int64_t ahead_ns = 3'600 * one_s; ///< the worker's clock

std::string record_of(trace::RecordKind kind, const void* payload,
                      std::size_t bytes) {
  const trace::RecordHead head{kind, static_cast<std::uint32_t>(bytes)};
  return std::string(reinterpret_cast<const char*>(&head), sizeof head)
         + std::string(static_cast<const char*>(payload), bytes);
}

std::string process_of(std::uint32_t number, std::int64_t realtime_ns) {
  const trace::ProcessRecord process{sizeof(trace::Event), number, 1, 0, 0,
                                     realtime_ns};
  return std::string(trace::file_magic)
         + record_of(trace::RecordKind::process, &process, sizeof process);
}

std::string event_of(trace::Kind kind, std::uint64_t flow,
                     std::int64_t time_ns) {
  trace::Event event;
  event.kind = kind;
  event.flow = flow;
  event.time_ns = time_ns;
  return record_of(trace::RecordKind::events, &event, sizeof event);
}

/// A message in each direction at `now`, 2 ms in flight.
void talk_on(FeedClocks& clocks, std::int64_t now) {
  const auto flow = static_cast<std::uint64_t>(now) + 1;
  using trace::Kind;
  clocks.add("master_01.events", event_of(Kind::send, flow, now));
  clocks.add("worker_00_01.events",
             event_of(Kind::receive, flow, now + 2 * ms + ahead_ns)
               + event_of(Kind::send, flow + 1, now + 2 * ms + ahead_ns));
  clocks.add("master_01.events",
             event_of(Kind::receive, flow + 1, now + 4 * ms));
}

FeedClocks two_hosts() {
  FeedClocks clocks;
  clocks.add("master_01.events", process_of(0, one_s));
  clocks.add("worker_00_01.events", process_of(1, one_s - ahead_ns));
  return clocks;
}

} // namespace

TEST(FeedClocks, TheFirstOffsetsAreThoseOfTheHostsClocks) {
  auto clocks = two_hosts();
  EXPECT_EQ(json::parse(clocks.changes(true)),
            json::parse(R"([{"file": "master_01.events", "from": 0, "add": 0,
                             "error": 0},
                            {"file": "worker_00_01.events", "from": 0,
                             "add": -3600000000000, "error": -1}])"));
  EXPECT_EQ(clocks.changes(false), "");
}

TEST(FeedClocks, OffsetsAreSentAgainFromTheFirstThatChanged) {
  auto clocks = two_hosts();
  talk_on(clocks, 0);
  const auto first = json::parse(clocks.changes(true));
  EXPECT_EQ(first.at(1).at("add"), -ahead_ns); // 2 ms each way
  EXPECT_EQ(first.at(1).at("error"), 2 * ms);
  talk_on(clocks, one_s);
  EXPECT_EQ(clocks.changes(false), "") << "within ten seconds";
  talk_on(clocks, 11 * one_s);
  const auto later = json::parse(clocks.changes(false));
  ASSERT_EQ(later.size(), 1U) << "the first ten seconds are known";
  EXPECT_EQ(later[0].at("file"), "worker_00_01.events");
  EXPECT_EQ(later[0].at("from"), 2 * ms + ahead_ns + 10 * one_s);
}

TEST(FeedClocks, FlowsOfAnotherAttemptAreOtherMessages) {
  auto clocks = two_hosts();
  talk_on(clocks, 0);
  const auto known = clocks.changes(true);
  clocks.add("master_02.events", process_of(0, one_s));
  clocks.add("worker_00_02.events", process_of(1, one_s - ahead_ns));
  clocks.add("worker_00_02.events",
             event_of(trace::Kind::receive, 1, 90 * one_s + ahead_ns));
  const auto later = json::parse(clocks.changes(false));
  ASSERT_EQ(later.size(), 2U);
  EXPECT_EQ(later[1].at("error"), -1) << "no message was between these two";
}

TEST(FeedClocks, CutRecordsAndOnesBeforeTheProcessAreIgnored) {
  FeedClocks clocks;
  clocks.add("bad.events", event_of(trace::Kind::send, 1, 1));
  const auto whole = process_of(0, one_s);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    clocks.add("cut.events", whole.substr(0, bytes));
  EXPECT_EQ(clocks.changes(true), "");
}
