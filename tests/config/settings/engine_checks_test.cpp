// Settings of servers that generate, and what cannot go with them.
#include "config/settings/engine_checks.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace {

using ::testing::HasSubstr;
using troupe::ConfigError;

std::string engine_error(const std::vector<std::string>& overrides) {
  std::vector<std::string> all
    = {"workflow=grpo",       "run.steps=9",      "data.train=p.jsonl",
       "models.actor.path=a", "reward.kind=rule", "rollout.n=8",
       "rollout.engine=vllm"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  try {
    troupe::load_settings({}, all);
  } catch (const ConfigError& caught) {
    return caught.what();
  }
  return "no error";
}

TEST(EngineChecks, AServerIsNamedOrStartedNotBoth) {
  EXPECT_EQ(engine_error({"rollout.server_command=serve"}), "no error");
  EXPECT_EQ(engine_error({"rollout.servers=['http://127.0.0.1:8000']"}),
            "no error");
  EXPECT_THAT(engine_error({}), HasSubstr("got neither; try "));
  EXPECT_THAT(engine_error({"rollout.server_command=serve",
                            "rollout.servers=['http://127.0.0.1:8000']"}),
              HasSubstr("got both"));
  EXPECT_THAT(engine_error({"rollout.servers=['127.0.0.1:8000']"}),
              HasSubstr("rollout.servers: expected addresses"));
  EXPECT_THAT(engine_error({"rollout.engine=own", "rollout.server_command=s"}),
              HasSubstr("rollout.server_command: expected rollout.engine to "
                        "be vllm"));
  EXPECT_THAT(engine_error({"rollout.engine=sglang"}),
              HasSubstr("sglang.launch_server"));
}

TEST(EngineChecks, WeightsGoOverTcpOrNcclToVllm) {
  const std::string command = "rollout.server_command=serve";
  EXPECT_EQ(engine_error({command, "rollout.weights_over=tcp"}), "no error");
  EXPECT_EQ(engine_error({command, "rollout.weights_over=nccl"}), "no error");
  EXPECT_THAT(engine_error({command, "rollout.weights_over=udp"}),
              HasSubstr("rollout.weights_over: expected one of memory, "
                        "tcp or nccl"));
  EXPECT_THAT(engine_error(
                {command, "rollout.weights_over=tcp", "rollout.engine=sglang"}),
              HasSubstr("rollout.weights_over: expected rollout.engine to be "
                        "vllm"));
}

TEST(EngineChecks, LogprobsAreThoseThatTrainingComparesWith) {
  const std::string command = "rollout.server_command=serve";
  EXPECT_THAT(engine_error({command, "rollout.temperature=0.7"}),
              HasSubstr("rollout.temperature: expected 1"));
  EXPECT_EQ(engine_error(
              {command, "rollout.temperature=0.7", "rollout.logprobs=sampled"}),
            "no error");
}

TEST(EngineChecks, LogprobsOfSglangAreAtTheTemperatureWithoutFilters) {
  const std::string command = "rollout.server_command=serve";
  const auto sglang = [&](const std::string& also) {
    return engine_error({"rollout.engine=sglang", command, also});
  };
  EXPECT_EQ(sglang("rollout.temperature=0.7"), "no error");
  EXPECT_THAT(sglang("rollout.logprobs=sampled"),
              HasSubstr("rollout.logprobs: expected unfiltered"));
  EXPECT_THAT(sglang("rollout.repetition_penalty=1.1"),
              HasSubstr("rollout.repetition_penalty: expected 1"));
  EXPECT_THAT(sglang("rollout.min_new_tokens=2"),
              HasSubstr("rollout.min_new_tokens: expected 0"));
}

TEST(EngineChecks, AdaptersAreForVllmAlone) {
  const std::string command = "rollout.server_command=serve";
  EXPECT_EQ(engine_error({command, "models.actor.lora.rank=4"}), "no error");
  const auto refused = engine_error(
    {"rollout.engine=sglang", command, "models.actor.lora.rank=4"});
  EXPECT_THAT(refused, HasSubstr("models.actor.lora.rank: expected 0"));
  EXPECT_THAT(refused, HasSubstr("try rollout.engine=vllm"));
}

TEST(EngineChecks, AdaptersDoNotGoByNccl) {
  const auto refused
    = engine_error({"rollout.server_command=serve", "rollout.weights_over=nccl",
                    "models.actor.lora.rank=4"});
  EXPECT_THAT(refused, HasSubstr("models.actor.lora.rank: expected 0 with "
                                 "rollout.weights_over nccl"));
  EXPECT_THAT(refused, HasSubstr("try rollout.weights_over=tcp"));
}

TEST(EngineChecks, WhatOnlyOurEngineDoesIsRefused) {
  const std::string command = "rollout.server_command=serve";
  EXPECT_THAT(engine_error({command, "rollout.stop=['x']"}),
              HasSubstr("rollout.stop: expected no texts"));
  EXPECT_THAT(engine_error({command, "rollout.kv_cache_gb=2"}),
              HasSubstr("rollout.kv_cache_gb: expected auto"));
  EXPECT_THAT(engine_error({command, "algorithm.routing_replay=true"}),
              HasSubstr("algorithm.routing_replay: expected false"));
}

} // namespace
