// Plans for servers that generate: the devices of each dp rank have the whole
// model and a server.
#include "plans/check/plan_check.hpp"

#include "tests/support/plans/check_case.hpp"
#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

#include <algorithm>

using ::testing::HasSubstr;

namespace troupe::plans {
namespace {

std::string served(std::size_t servers, const char* strategy,
                   const BreakCase& also = {}) {
  return broken([&](CheckCase& c) {
    c.context.servers = servers;
    c.plan.calls["actor_gen"]
      = {.devices = {Rank{0}, Rank{1}}, .strategy = parse_strategy(strategy)};
    if (also)
      also(c);
  });
}

TEST(ServerLimits, AServersModelIsOnTensorParallelDevices) {
  EXPECT_EQ(served(0, "d2"), "");
  EXPECT_EQ(served(0, "t2"), "");
  EXPECT_THAT(served(0, "p2"),
              HasSubstr("calls.actor_gen: expected a strategy of d and t "
                        "(rollout.engine), got p2; try d2"));
}

TEST(ServerLimits, TheirTurnsMayBeLed) {
  const auto led
    = [](CheckCase& c) { c.workflow.calls.front().by.user_actor = true; };
  EXPECT_EQ(served(0, "d2", led), "");
  EXPECT_THAT(served(0, "t2", led), HasSubstr("got t2; try d2"));
}

TEST(ServerLimits, AServersDevicesAreInOneNode) {
  const auto with_nodes = [](CheckCase& c) {
    c.plan.cluster = {.nodes = 4, .devices_per_node = 1};
  };
  EXPECT_THAT(served(0, "t2", with_nodes),
              HasSubstr("expected each server's devices in one node "
                        "(rollout.engine), got t2; try t1 or less"));
}

TEST(ServerLimits, NamedServersAreOnePerDpRank) {
  EXPECT_EQ(served(2, "d2"), "");
  EXPECT_EQ(served(1, "t2"), "");
  EXPECT_THAT(served(3, "d2"),
              HasSubstr("expected d3, a dp rank per address of "
                        "rollout.servers, got d2; try strategy d3"));
  EXPECT_THAT(served(2, "t2"), HasSubstr("got d1; try strategy d2"));
}

/// Returns the report of a plan whose responses have `max_tokens`.
PlanReport report_with(bool serves, std::int64_t max_tokens) {
  return report_of([&](CheckCase& c) {
    c.context.shapes["actor"] = shape_7b();
    c.context.sizes.max_sequence_tokens = max_tokens;
    c.context.sizes.max_new_tokens = max_tokens / 2;
    c.context.sizes.engine = {.packs_weights = true, .serves = serves};
  });
}

std::uint64_t generation_bytes(const PlanReport& report) {
  const auto& tasks = report.devices.at(0).tasks;
  return std::ranges::find(tasks, "actor_gen", &TaskMemory::task)->bytes;
}

TEST(ServerLimits, AServedCallHasNoCacheOfOurs) {
  const auto own = report_with(false, 128);
  EXPECT_TRUE(own.rooms.contains("actor_gen"));
  EXPECT_GT(generation_bytes(report_with(false, 1024)), generation_bytes(own));
  const auto served = report_with(true, 128);
  EXPECT_FALSE(served.rooms.contains("actor_gen"));
  EXPECT_LT(generation_bytes(served), generation_bytes(own));
  EXPECT_GT(generation_bytes(served), 0U); // its weights are checked here
  EXPECT_EQ(generation_bytes(report_with(true, 1024)),
            generation_bytes(served));
}

TEST(ServerLimits, EvaluationsAreGeneratedByOurEngine) {
  const BatchSizes sizes{.engine = {.serves = true}};
  EXPECT_TRUE(is_served({.kind = CallKind::generate}, sizes));
  EXPECT_FALSE(is_served({.kind = CallKind::inference}, sizes));
  EXPECT_FALSE(
    is_served({.kind = CallKind::generate, .evaluates = true}, sizes));
}

/// Returns the mistakes of a plan whose servers have this cache.
std::string with_cache(const ServerCache& cache,
                       std::uint64_t device_memory = 0) {
  return served(0, "d2", [&](CheckCase& c) {
    c.context.shapes["actor"] = shape_7b();
    c.context.sizes.engine = {.packs_weights = true, .serves = true};
    c.context.sizes.engine.cache = cache;
    if (device_memory > 0)
      c.context.device_memory_bytes = device_memory;
  });
}

TEST(ServerLimits, ACacheHoldsOneWholeSequence) {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  EXPECT_EQ(with_cache({.host_bytes = gib}), "");
  EXPECT_THAT(with_cache({.host_bytes = gib / 1024}),
              HasSubstr("calls.actor_gen: expected a cache of servers for 128 "
                        "tokens, one prompt with its response, got room for"));
  EXPECT_EQ(with_cache({}), "") << "not known";
}

TEST(ServerLimits, WhatServersHaveOfADeviceComesBesideTraining) {
  constexpr std::uint64_t device = 400'000'000'000;
  EXPECT_EQ(with_cache({.device_limit = device / 10}, device), "");
  EXPECT_THAT(with_cache({.device_limit = device}, device),
              HasSubstr("400 GB servers (rollout.server_command)"));
}

TEST(ServerLimits, OtherCallsAndOurOwnEngineAreNotLimited) {
  EXPECT_EQ(served(0, "d2", [](CheckCase& c) { c.context.servers.reset(); }),
            "");
  EXPECT_EQ(broken([](CheckCase& c) {
              c.plan.calls["actor_gen"] = {.devices = {Rank{0}, Rank{1}},
                                           .strategy = parse_strategy("t2")};
            }),
            "");
}

} // namespace
} // namespace troupe::plans
