// Instances of user-defined actors: how many are where, and which samples each
// one takes.
#include "plans/workflow/user_placement.hpp"

#include <gmock/gmock.h>

namespace troupe::plans {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Cluster two_hosts{
  .nodes = 2, .devices_per_node = 3, .workers_per_node = 3};

std::vector<std::uint32_t> counts(const Placement& placement) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t w = 0; w < two_hosts.num_workers(); ++w)
    all.push_back(instances_on(two_hosts, placement, WorkerId{w}));
  return all;
}

TEST(UserPlacement, CountsByHostOrByWorker) {
  EXPECT_THAT(counts({}), ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_THAT(counts({.on_workers = true, .instances = 2}),
              ElementsAre(2, 2, 2, 2, 2, 2));
  EXPECT_THAT(counts({.instances = 1}), ElementsAre(1, 0, 0, 1, 0, 0));
  EXPECT_THAT(counts({.instances = 5}), ElementsAre(2, 2, 1, 2, 2, 1));
  EXPECT_THAT(counts({.devices = {Rank{0}}, .instances = 4}),
              ElementsAre(4, 4, 4, 4, 4, 4));
}

void expect_homes_on_their_host(const Placement& placement) {
  for (std::uint32_t w = 0; w < two_hosts.num_workers(); ++w) {
    const auto home = instances_for(two_hosts, placement, WorkerId{w});
    EXPECT_EQ(home.value / 3, w / 3);
    EXPECT_GT(instances_on(two_hosts, placement, home), 0u);
    const bool bears = instances_on(two_hosts, placement, WorkerId{w}) > 0;
    EXPECT_EQ(bears, home == WorkerId{w});
  }
}

TEST(UserPlacement, SamplesStayOnTheirHost) {
  for (const int instances : {0, 1, 2, 3, 7}) {
    expect_homes_on_their_host({.instances = instances});
    expect_homes_on_their_host({.on_workers = true, .instances = instances});
  }
}

TEST(UserPlacement, MistakesAreOneSentence) {
  const Call own{.name = "check", .by = {.user_actor = true}};
  const Call rule{.name = "rule"};
  const Call model{.name = "solve",
                   .kind = CallKind::generate,
                   .role = "actor",
                   .by = {.user_actor = true}};
  EXPECT_THAT(why_no_instances(own, {.on_workers = true, .instances = 3}),
              IsEmpty());
  EXPECT_THAT(why_no_instances(model, {.instances = 3}), IsEmpty());
  EXPECT_EQ(why_no_instances(rule, {.instances = 3}),
            "expected no instances, for rule is no actor of your own, got 3; "
            "try leaving them out");
  EXPECT_EQ(why_no_instances(rule, {.on_workers = true}),
            "expected host, for rule is no actor of your own, got workers; try "
            "host");
  EXPECT_EQ(why_no_instances(model, {.on_workers = true}),
            "expected devices, for solve has weights, got workers");
}

TEST(UserPlacement, IsParsedAndPrinted) {
  const auto text = "cluster: {nodes: 1, devices_per_node: 1, "
                    "workers_per_node: 1}\n"
                    "calls:\n"
                    "  check: {devices: workers, instances: 2}\n"
                    "  pick: {devices: host}\n";
  const auto plan = parse_plan(text, "plan.yaml");
  EXPECT_TRUE(plan.calls.at("check").on_workers);
  EXPECT_EQ(plan.calls.at("check").instances, 2);
  EXPECT_FALSE(plan.calls.at("pick").on_workers);
  EXPECT_EQ(print(plan), text);
}

} // namespace
} // namespace troupe::plans
