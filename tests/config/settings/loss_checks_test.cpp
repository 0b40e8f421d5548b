// Settings of margins, labels and texts beside a training that make no sense.
#include "config/settings/loss_checks.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace {

using ::testing::HasSubstr;
using troupe::ConfigError;
using Words = std::vector<std::string>;

std::string error(const std::string& workflow, const Words& overrides) {
  Words all = {"workflow=" + workflow, "run.steps=9", "data.train=p.jsonl"};
  if (workflow == "reward") {
    all.emplace_back("models.reward.path=a");
  } else {
    all.emplace_back("models.actor.path=a");
  }
  if (workflow == "grpo")
    all.insert(all.end(), {"reward.kind=rule", "rollout.n=8"});
  all.insert(all.end(), overrides.begin(), overrides.end());
  try {
    troupe::load_settings({}, all);
  } catch (const ConfigError& caught) {
    return caught.what();
  }
  return "no error";
}

TEST(PtxChecks, TheCoefficientAndTheFileGoTogether) {
  EXPECT_EQ(error("grpo", {"data.ptx=t.jsonl", "algorithm.ptx_coef=0.5"}),
            "no error");
  EXPECT_THAT(error("grpo", {"data.ptx=t.jsonl"}),
              HasSubstr("data.ptx: expected algorithm.ptx_coef set"));
  EXPECT_THAT(error("grpo", {"algorithm.ptx_coef=0.5"}),
              HasSubstr("algorithm.ptx_coef: expected data.ptx set"));
  EXPECT_THAT(error("grpo", {"data.ptx_batch_size=8"}),
              HasSubstr("data.ptx_batch_size: expected data.ptx set"));
  EXPECT_THAT(error("sft", {"data.ptx=t.jsonl", "algorithm.ptx_coef=0.5"}),
              HasSubstr("only settings that workflow sft uses"));
}

TEST(PtxChecks, EachOptimizerStepHasARow) {
  const auto with = [](const char* rows) {
    return error("grpo", {"data.ptx=t.jsonl", "algorithm.ptx_coef=0.5",
                          "algorithm.mini_batches=4", rows});
  };
  EXPECT_EQ(with("data.ptx_batch_size=4"), "no error");
  EXPECT_THAT(with("data.ptx_batch_size=3"),
              HasSubstr("for each of the 4 optimizer steps"));
  EXPECT_THAT(with("data.batch_size=2"),
              HasSubstr("data.batch_size: expected at least one row"));
}

TEST(SamplingMaskChecks, MasksNeedABoundAndTheSamplersProbabilities) {
  const auto with = [](Words overrides) {
    overrides.emplace_back("algorithm.sampling_mask=true");
    return error("grpo", overrides);
  };
  EXPECT_EQ(with({"rollout.top_k=20"}), "no error");
  EXPECT_EQ(with({"rollout.top_k=20", "rollout.top_p=0.9", "rollout.min_p=0.01",
                  "rollout.logprobs=sampled"}),
            "no error");
  EXPECT_THAT(with({"rollout.top_p=0.9"}),
              HasSubstr("rollout.top_k: expected a whole number >= 1"));
  EXPECT_THAT(with({"rollout.top_k=20", "rollout.logprobs=unfiltered"}),
              HasSubstr("rollout.logprobs: expected sampled"));
  EXPECT_THAT(with({"rollout.top_k=20", "rollout.repetition_penalty=1.1"}),
              HasSubstr("rollout.repetition_penalty: expected 1"));
  EXPECT_THAT(error("sft", {"algorithm.sampling_mask=true"}),
              HasSubstr("only settings that workflow sft uses"));
}

TEST(SamplingMaskChecks, LogprobsBecomeThoseOfTheSampler) {
  const Words grpo
    = {"workflow=grpo",       "run.steps=9",       "data.train=p.jsonl",
       "models.actor.path=a", "models.ref.path=a", "reward.kind=rule",
       "rollout.n=8",         "rollout.top_k=20"};
  EXPECT_EQ(troupe::load_settings({}, grpo).rollout.logprobs, "unfiltered");
  Words masked = grpo;
  masked.emplace_back("algorithm.sampling_mask=true");
  EXPECT_EQ(troupe::load_settings({}, masked).rollout.logprobs, "sampled");
}

TEST(KtoChecks, AStepNeedsOtherRowsToCompareWith) {
  EXPECT_EQ(error("kto", {"data.batch_size=2"}), "no error");
  EXPECT_THAT(error("kto", {"data.batch_size=1"}),
              HasSubstr("data.batch_size: expected at least 2 rows"));
}

TEST(KtoChecks, ItReadsBetaAndItsWeightsButNoLossOfPairs) {
  EXPECT_EQ(error("kto", {"algorithm.beta=0.3", "algorithm.desirable_weight=2",
                          "algorithm.undesirable_weight=0.5"}),
            "no error");
  EXPECT_THAT(error("kto", {"algorithm.pair_loss=ipo"}),
              HasSubstr("only settings that workflow kto uses"));
  EXPECT_THAT(error("dpo", {"algorithm.desirable_weight=2"}),
              HasSubstr("only settings that workflow dpo uses"));
}

TEST(MarginChecks, OnlyRewardModelsHaveMargins) {
  EXPECT_EQ(error("reward", {"data.fields.margin=gap"}), "no error");
  EXPECT_EQ(error("reward", {"algorithm.center_coef=0.01"}), "no error");
  EXPECT_THAT(
    error("dpo", {"data.fields.margin=gap"}),
    HasSubstr("data.fields.margin: expected it with workflow reward"));
  EXPECT_THAT(error("reward", {"data.fields.margin='{gap}'"}),
              HasSubstr("data.fields.margin: expected a column of numbers"));
  EXPECT_THAT(error("dpo", {"algorithm.center_coef=0.01"}),
              HasSubstr("only settings that workflow dpo uses"));
}

} // namespace
