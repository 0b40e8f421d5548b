#include "config/error.hpp"
#include "plans/plan_check.hpp"
#include "plans/presets.hpp"

#include <gtest/gtest.h>

#include "support.hpp"

namespace troupe::plans {
namespace {

TEST(Presets, AreValidForEveryWorkflowAndCluster) {
  for (const auto& workflow :
       {make_ppo(), sft_workflow({}), reward_workflow({})})
    for (const auto& name : preset_names())
      for (const std::uint32_t devices : {1u, 2u, 4u}) {
        const Cluster cluster{.devices_per_node = devices};
        const auto plan = preset(name, workflow, cluster);
        CheckContext context{.workflow = workflow,
                             .plan = plan,
                             .sizes = {.samples_per_step = 64}};
        EXPECT_TRUE(check_plan(context).ok()) << name;
        EXPECT_EQ(parse_plan(print(plan), "printed"), plan);
      }
}

TEST(Presets, DataParallelUsesEveryDeviceAndSingleOne) {
  const Cluster cluster{.nodes = 2, .devices_per_node = 4};
  const auto workflow = make_ppo();
  EXPECT_EQ(preset("data_parallel", workflow, cluster).calls["rew_inf"],
            on(0, 7));
  EXPECT_EQ(preset("single", workflow, cluster).calls["rew_inf"], on(0, 0));
  EXPECT_TRUE(
    preset("single", workflow, cluster).calls["advantages"].devices.empty());
}

TEST(Presets, UnknownAndLaterNamesSayWhatThereIs) {
  const auto refusal = [](const char* name) -> std::string {
    try {
      preset(name, make_ppo(), Cluster{});
    } catch (const PlanError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal("flattening"),
            "plan: preset flattening comes with a later version; this one has "
            "single, data_parallel");
  EXPECT_EQ(refusal("data_paralel"),
            "plan: unknown preset 'data_paralel'; this version has single, "
            "data_parallel; try 'data_parallel'");
}

} // namespace
} // namespace troupe::plans
