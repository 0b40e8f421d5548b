// Plans for servers that generate: each device of the call has the whole model
// and a server.
#include "plans/check/plan_check.hpp"

#include "tests/support/plans/check_case.hpp"
#include <gmock/gmock.h>

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

TEST(ServerLimits, ADeviceHoldsTheWholeModel) {
  EXPECT_EQ(served(0, "d2"), "");
  EXPECT_THAT(served(0, "t2"),
              HasSubstr("calls.actor_gen: expected the whole model on each "
                        "device (rollout.engine), got t2; try d2"));
  EXPECT_THAT(served(0, "p2"), HasSubstr("got p2; try d2"));
}

TEST(ServerLimits, NamedServersAreOnePerDevice) {
  EXPECT_EQ(served(2, "d2"), "");
  EXPECT_THAT(served(3, "d2"),
              HasSubstr("expected 3 devices, one per address of "
                        "rollout.servers, got 2; try strategy d3"));
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
