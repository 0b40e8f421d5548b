// Settings of agents from outside, and what cannot go with them.
#include "config/settings/agent_checks.hpp"
#include "config/settings/settings_schema.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace {

using ::testing::HasSubstr;
using troupe::ConfigError;

std::vector<std::string>
agent_overrides(const std::vector<std::string>& overrides) {
  std::vector<std::string> all
    = {"workflow=grpo",       "run.steps=9",        "data.train=p.jsonl",
       "models.actor.path=a", "reward.kind=agents", "rollout.n=8"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return all;
}

std::string agent_error(const std::vector<std::string>& overrides) {
  try {
    troupe::load_settings({}, agent_overrides(overrides));
  } catch (const ConfigError& caught) {
    return caught.what();
  }
  return "no error";
}

TEST(AgentChecks, DefaultsAreThoseOfThePage) {
  const auto settings
    = troupe::load_settings({}, agent_overrides({"agents.command=run"}));
  const auto& agents = troupe::agents_of(settings);
  EXPECT_EQ(agents.command, "run");
  EXPECT_EQ(agents.port, 0);
  EXPECT_FALSE(agents.from_outside());
  EXPECT_EQ(agents.concurrency, 64);
  EXPECT_EQ(agents.timeout_s, 600);
  EXPECT_EQ(agents.retries, 1);
  EXPECT_TRUE(agents.with.empty());
}

TEST(AgentChecks, TheNumberOfProgramsNeedsPrograms) {
  EXPECT_THAT(agent_error({}), HasSubstr("agents.command: expected a program"));
  EXPECT_EQ(agent_error({"agents.command=run"}), "no error");
  EXPECT_EQ(agent_error({"agents.command=run", "reward.kind=rule"}),
            "no error");
}

TEST(AgentChecks, WhatNobodyWouldReadIsRefused) {
  EXPECT_THAT(agent_error({"reward.kind=rule", "agents.port=8000"}),
              HasSubstr("agents.port: expected agents.command set"));
  EXPECT_THAT(agent_error({"agents.command=run", "workflow=distillation",
                           "reward=null", "models.teacher.path=t"}),
              HasSubstr("agents"));
  EXPECT_THAT(agent_error({"agents.command=run", "agents.retries=-1"}),
              HasSubstr("agents.retries: expected a whole number >= 0"));
}

TEST(AgentChecks, ProgramsMayAskAnOpponentToo) {
  const auto settings = troupe::load_settings(
    {}, agent_overrides({"agents.command=run", "agents.with=[opponent]"}));
  EXPECT_TRUE(troupe::uses_role(settings, "opponent"));
  EXPECT_EQ(settings.models.at("opponent").path,
            settings.models.at("actor").path);
  EXPECT_EQ(agent_error({"agents.command=run", "agents.with=[opponent]",
                         "models.opponent.path=other"}),
            "no error");
  EXPECT_THAT(agent_error({"agents.command=run", "models.opponent.path=other"}),
              HasSubstr("models.opponent"));
  EXPECT_THAT(agent_error({"reward.kind=rule", "agents.with=[opponent]"}),
              HasSubstr("agents.with: expected agents.command set"));
  EXPECT_THAT(
    agent_error({"agents.command=run", "agents.with=[opponent]",
                 "rollout.engine=vllm", "rollout.server_command=serve"}),
    HasSubstr("agents.with: expected nothing with rollout.engine"));
}

TEST(AgentChecks, ProgramsThatOthersStartNeedAPortAndNoSandboxOfOurs) {
  const std::string outside = "agents.command=outside";
  EXPECT_THAT(agent_error({outside}),
              HasSubstr("agents.port: expected a port with agents.command: "
                        "outside"));
  EXPECT_EQ(agent_error({outside, "agents.port=8000"}), "no error");
  EXPECT_THAT(
    agent_error({outside, "agents.port=8000", "agents.sandbox=bwrap --"}),
    HasSubstr("agents.sandbox: expected nothing"));
  EXPECT_THAT(agent_error({outside, "agents.port=65536"}),
              HasSubstr("agents.port"));
  EXPECT_EQ(agent_error({"agents.command=run", "agents.port=8000",
                         "agents.sandbox=bwrap --"}),
            "no error");
}

TEST(AgentChecks, ServersMayAnswerTheTurns) {
  const std::vector<std::string> served{"agents.command=run",
                                        "rollout.engine=vllm",
                                        "rollout.server_command=serve"};
  EXPECT_EQ(agent_error(served), "no error");
  auto stops = served;
  stops.push_back("rollout.stop=['x']");
  EXPECT_THAT(agent_error(stops), HasSubstr("rollout.stop: expected no texts"));
}

TEST(AgentChecks, WhatProgramsCannotDoIsRefused) {
  const std::string command = "agents.command=run";
  EXPECT_THAT(agent_error({command, "algorithm.routing_replay=true"}),
              HasSubstr("algorithm.routing_replay: expected false"));
  EXPECT_THAT(agent_error({command, "algorithm.sampling_mask=true",
                           "rollout.top_k=4", "rollout.logprobs=sampled"}),
              HasSubstr("algorithm.sampling_mask: expected false"));
  EXPECT_THAT(agent_error({command, "run.replay=samples.jsonl"}),
              HasSubstr("run.replay: expected nothing"));
}

} // namespace
