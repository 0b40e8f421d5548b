#include "actors/master/idle_times.hpp"

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using plans::WaitReason;

constexpr Rank first{0}, second{1};

Clock::time_point at(double seconds) {
  return Clock::time_point{}
         + std::chrono::duration_cast<Clock::duration>(Seconds{seconds});
}

TaskReport task(std::vector<Rank> devices, double begin_s, double end_s,
                std::vector<Seconds> busy) {
  TaskReport report;
  report.devices = std::move(devices);
  report.started = at(begin_s);
  report.ended = at(end_s);
  report.busy = std::move(busy);
  return report;
}

TEST(IdleTimes, TheGapBeforeATaskIsChargedToItsWaitReason) {
  IdleTimes times(at(0));
  IdleSeconds idle;
  times.begin({first, second}, WaitReason::dependency, at(1), idle);
  EXPECT_DOUBLE_EQ(idle.dependency.count(), 2); // one second of two devices
  times.end(task({first, second}, 1, 3, {Seconds{2}, Seconds{2}}), Seconds{0},
            idle);
  times.begin({first}, WaitReason::version, at(3.5), idle);
  times.begin({second}, WaitReason::device, at(4), idle);
  EXPECT_DOUBLE_EQ(idle.version.count(), 0.5);
  EXPECT_DOUBLE_EQ(idle.device.count(), 1);
  EXPECT_DOUBLE_EQ(idle.bytes.count(), 0);
}

TEST(IdleTimes, InsideATaskWaitsForRowsPrecedeWaitsForSlowerDevices) {
  IdleTimes times(at(0));
  IdleSeconds idle;
  times.begin({first, second}, WaitReason::dependency, at(0), idle);
  // rows until 1, then 4 s of work on one device and 1 s on the other
  times.end(task({first, second}, 0, 5, {Seconds{4}, Seconds{1}}), Seconds{1},
            idle);
  EXPECT_DOUBLE_EQ(idle.bytes.count(), 2);
  EXPECT_DOUBLE_EQ(idle.device.count(), 3);
  EXPECT_DOUBLE_EQ(idle.total().count(), 5);
}

TEST(IdleTimes, BusyAndIdleTimesAddUpToTheWholeTime) {
  IdleTimes times(at(0));
  IdleSeconds idle;
  double busy_s = 0;
  for (int i = 0; i < 10; ++i) {
    times.begin({first}, WaitReason::version, at(i + 0.25), idle);
    times.end(task({first}, i + 0.25, i + 1, {Seconds{0.5}}), Seconds{0.125},
              idle);
    busy_s += 0.5;
  }
  EXPECT_DOUBLE_EQ(busy_s + idle.total().count(), 10);
}

} // namespace
} // namespace troupe::actors
