#include "config/settings/agent_checks.hpp"

#include "config/settings/setting_checks.hpp"
#include "config/settings/workflow_traits.hpp"

namespace troupe {

namespace {

class AgentChecks : SettingChecks {
public:
  AgentChecks(const Settings& settings, const Place& whole)
    : SettingChecks(settings, whole, "agents.command") {}

  /// The number of programs needs programs.
  void check_reward() const {
    if (settings_.reward.kind == "agents"
        && agents_of(settings_).command.empty())
      fail("agents.command", "a program whose number is the reward", "nothing",
           "agents.command='python3 agent.py', or another reward.kind");
  }

  /// Programs that others start need a port, and no sandbox of ours.
  void check_start() const {
    const auto& agents = agents_of(settings_);
    if (!agents.from_outside())
      return;
    if (agents.port == 0)
      fail("agents.port", "a port with agents.command: outside", "0",
           "agents.port=8000");
    if (!agents.sandbox.empty())
      fail("agents.sandbox", "nothing with agents.command: outside",
           "'" + agents.sandbox + "'", "agents.sandbox=null");
  }

  void check_generation() const {
    const auto& policy = settings_.algorithm.loss;
    if (policy.sampling_mask)
      fail("algorithm.sampling_mask", "false with agents.command", "true",
           "algorithm.sampling_mask=false");
    if (policy.routing_replay)
      fail("algorithm.routing_replay", "false with agents.command", "true",
           "algorithm.routing_replay=false");
    if (!agents_of(settings_).with.empty()
        && !settings_.rollout.engine.is_own())
      fail("agents.with", "nothing with rollout.engine, which has one model",
           "roles", "agents.with=null, or rollout.engine=own");
    if (!settings_.run.replay.empty())
      fail("run.replay",
           "nothing with agents.command, whose programs are not "
           "replayed",
           "'" + settings_.run.replay + "'", "run.replay=null");
  }
};

} // namespace

void check_agents(const Settings& settings, const Place& whole) {
  const AgentChecks checks(settings, whole);
  if (workflow_reads(settings.workflow, SettingsGroup::rewards))
    checks.check_reward();
  if (workflow_reads(settings.workflow, SettingsGroup::agents)
      && !agents_of(settings).command.empty()) {
    checks.check_start();
    checks.check_generation();
  }
}

} // namespace troupe
