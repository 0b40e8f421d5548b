// Clocks of hosts from the messages between them: whatever the delays are, the
// true offset lies within the reported error.
#include "runtime/trace/clock_offsets.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

using namespace troupe;
using runtime::clock_offsets;
using trace::Kind;
using trace::TraceFile;

namespace {

constexpr std::int64_t microsecond = 1'000;
constexpr std::int64_t second = 1'000'000'000;

TraceFile file_of(std::uint32_t number, std::int64_t real_minus_monotonic_ns) {
  TraceFile file;
  file.process_number = number;
  file.start_realtime_ns = real_minus_monotonic_ns;
  return file;
}

void add(TraceFile& file, Kind kind, std::uint64_t flow, std::int64_t time_ns) {
  trace::Event event;
  event.kind = kind;
  event.flow = flow;
  event.time_ns = time_ns;
  file.events.push_back(event);
}

/// A request and its reply every 100 ms, 200 us to 5 ms in flight. The other
/// clock is `ahead` of the first and gains 20 us per second.
struct TwoHosts {
  TraceFile first = file_of(0, 0);
  TraceFile other;
  std::int64_t ahead_ns;

  TwoHosts(std::int64_t ahead, std::int64_t real_time_error)
    : other(file_of(1, real_time_error - ahead)),
      ahead_ns(ahead) {
    std::mt19937 draw(1);
    std::uniform_int_distribution<std::int64_t> late(200 * microsecond,
                                                     5'000 * microsecond);
    for (std::uint64_t i = 0; i < 600; ++i) {
      auto now = static_cast<std::int64_t>(i) * second / 10;
      add(first, Kind::send, 2 * i + 1, now);
      now += late(draw);
      add(other, Kind::receive, 2 * i + 1, now + apart(now));
      add(other, Kind::send, 2 * i + 2, now + apart(now));
      now += late(draw);
      add(first, Kind::receive, 2 * i + 2, now);
    }
  }
  std::int64_t apart(std::int64_t now) const {
    return ahead_ns + now / 50'000;
  }
};

} // namespace

TEST(ClockOffsets, TheTrueOffsetIsWithinTheErrorForAMinute) {
  const TwoHosts hosts(3'600 * second,
                       40'000 * microsecond); // real time 40 ms off
  const auto offset = clock_offsets({hosts.first, hosts.other}).at(1);
  EXPECT_EQ(offset.add_ns.size(), 6U);
  EXPECT_GT(offset.error_ns, 0);
  EXPECT_LT(offset.error_ns, 1'000 * microsecond);
  for (const auto& event : hosts.other.events) {
    const auto true_ns
      = event.time_ns - hosts.apart(event.time_ns - hosts.ahead_ns);
    EXPECT_LE(std::abs(event.time_ns + offset.at(event.time_ns) - true_ns),
              offset.error_ns);
  }
}

TEST(ClockOffsets, ProcessesOfOneHostKeepTheirTimes) {
  const TwoHosts hosts(0, 700'000
                            * microsecond); // its real-time clock was stepped
  auto other = hosts.other;
  std::erase_if(other.events,
                [](const auto& event) { return event.time_ns > second / 10; });
  const auto offset = clock_offsets({hosts.first, other}).at(1);
  EXPECT_EQ(offset.add_ns, std::vector<std::int64_t>{0});
  EXPECT_EQ(offset.error_ns, 0);
}

TEST(ClockOffsets, HostsThatBootedTogetherAreAlignedByMessages) {
  const TwoHosts hosts(500'000 * microsecond, 0);
  const auto offset = clock_offsets({hosts.first, hosts.other}).at(1);
  EXPECT_NEAR(static_cast<double>(offset.add_ns.front()), -5e8, 1e6);
  EXPECT_GT(offset.error_ns, 0);
}

TEST(ClockOffsets, WithoutMessagesTheHostClocksDecideAndNoErrorIsReported) {
  const auto offset
    = clock_offsets({file_of(0, 0), file_of(1, 5 * second)}).at(1);
  EXPECT_EQ(offset.add_ns, std::vector<std::int64_t>{5 * second});
  EXPECT_EQ(offset.error_ns, -1);
}

TEST(ClockOffsets, AttemptsThatReuseFlowIdsAreKeptApart) {
  const TwoHosts hosts(3'600 * second, 0);
  auto later = hosts.first;
  for (auto& event : later.events)
    event.time_ns += 1'000 * second;
  auto other_later = hosts.other;
  for (auto& event : other_later.events)
    event.time_ns += 1'000 * second;
  const auto offsets
    = clock_offsets({hosts.first, later, hosts.other, other_later});
  EXPECT_LT(offsets.at(3).error_ns, 1'000 * microsecond);
  EXPECT_NEAR(static_cast<double>(offsets.at(3).add_ns.front()), -3.6e12, 1e6);
}

TEST(ClockOffsets, EventsTakenOneByOneInAnyOrderGiveTheSame) {
  const TwoHosts hosts(3'600 * second, 40'000 * microsecond);
  const std::vector files{hosts.first, hosts.other};
  const auto expected = clock_offsets(files).at(1);
  runtime::ClockAligner aligner;
  for (const auto& file : files)
    aligner.add_file({file.process_number, 1, file.start_realtime_ns});
  aligner.add_event(1, hosts.other.events.front());
  for (std::size_t i = hosts.first.events.size(); i-- > 0;)
    for (std::size_t f = 2; f-- > 0;) {
      aligner.add_event(f, files[f].events[i]);
      aligner.add_event(f, files[f].events[i]); // changes nothing
    }
  EXPECT_EQ(aligner.offset(1, true).add_ns, expected.add_ns);
  EXPECT_EQ(aligner.offset(1, true).error_ns, expected.error_ns);
  EXPECT_EQ(aligner.offset(0, true).add_ns, std::vector<std::int64_t>{0});
}

TEST(ClockOffsets, WhileARunGoesOnTheOffsetIsThatOfWholeSpans) {
  const TwoHosts hosts(3'600 * second, 40'000 * microsecond);
  runtime::ClockAligner aligner;
  aligner.add_file({0, 1, hosts.first.start_realtime_ns});
  aligner.add_file({1, 1, hosts.other.start_realtime_ns});
  EXPECT_EQ(aligner.offset(1, false).error_ns, -1); // the hosts' clocks decide
  std::vector<std::uint64_t> versions{aligner.version(1)};
  for (std::size_t i = 0; i < hosts.first.events.size(); ++i) {
    aligner.add_event(0, hosts.first.events[i]);
    aligner.add_event(1, hosts.other.events[i]);
    if (aligner.version(1) == versions.back())
      continue;
    versions.push_back(aligner.version(1));
    const auto offset = aligner.offset(1, false);
    const auto spans = offset.add_ns.size();
    if (spans > 1) // the newest has one message
      EXPECT_EQ(offset.add_ns[spans - 1], offset.add_ns[spans - 2]);
    if (offset.error_ns > 0)
      EXPECT_LT(offset.error_ns, 5'000 * microsecond);
  }
  // alone, with a message, with both directions; then every ten seconds
  EXPECT_EQ(versions.size(), 3 + 5U);
}

TEST(ClockOffsets, MessagesThatAreNeverHandledAreForgotten) {
  TwoHosts hosts(3'600 * second, 0);
  runtime::ClockAligner aligner(100);
  aligner.add_file({0, 1, 0});
  aligner.add_file({1, 1, 0});
  trace::Event lost;
  lost.kind = Kind::send;
  lost.flow = 1'000'000;
  aligner.add_event(0, lost);
  for (std::uint64_t i = 0; i < 200; ++i) {
    trace::Event later = lost;
    later.flow += 1 + i;
    aligner.add_event(0, later);
  }
  lost.kind = Kind::receive;
  lost.time_ns = second;
  aligner.add_event(1, lost);
  lost.flow += 200;
  aligner.add_event(1, lost);
  for (const auto& event : hosts.first.events)
    aligner.add_event(0, event);
  const auto bounds = aligner.offset(1, true);
  EXPECT_EQ(bounds.error_ns, 0) << "one direction only: one host";
}
