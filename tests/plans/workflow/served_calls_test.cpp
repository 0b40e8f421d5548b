// Which calls servers answer, and whose servers are updated.
#include "plans/workflow/served_calls.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/support.hpp"

namespace troupe::plans {
namespace {

TEST(ServedCalls, SettingsOfAnEngineMarkItsGenerations) {
  const auto marked = [](const std::string& replay) {
    const auto workflow = make_grpo([&](Settings& settings) {
      settings.rollout.engine.kind = "vllm";
      settings.rollout.engine.server_command = "vllm serve";
      settings.run.replay = replay;
    });
    EXPECT_FALSE(workflow.call("ref_inf").by.servers);
    return workflow.call("actor_gen").by.servers;
  };
  EXPECT_TRUE(marked(""));
  EXPECT_FALSE(marked("recorded")) << "nobody asks a server then";
  EXPECT_FALSE(make_grpo().call("actor_gen").by.servers);
}

TEST(ServedCalls, FrozenRolesAndEvaluationsNeedNoUpdates) {
  const auto workflow = make_ppo();
  auto call = workflow.call("actor_gen");
  EXPECT_FALSE(has_server_update(workflow, call)) << "our own engine";
  call.by.servers = true;
  EXPECT_TRUE(has_server_update(workflow, call));
  auto frozen = call;
  frozen.role = "ref";
  EXPECT_FALSE(has_server_update(workflow, frozen));
  call.evaluates = true;
  EXPECT_FALSE(has_server_update(workflow, call));
}

} // namespace
} // namespace troupe::plans
