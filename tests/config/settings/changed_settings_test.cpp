#include "config/settings/changed_settings.hpp"

#include <gmock/gmock.h>

namespace {

std::vector<std::string> lines(const std::string& yaml) {
  std::vector<std::string> found;
  for (const auto& setting :
       troupe::changed_settings(troupe::parse_settings(yaml, "x.yaml")))
    found.push_back(setting.path + " " + setting.value + " "
                    + setting.default_text);
  return found;
}

TEST(ChangedSettings, AreUserValuesThatDifferFromDefaults) {
  EXPECT_THAT(lines("workflow: grpo\n"
                    "run: {steps: 5, seed: 1}\n"
                    "models: {actor: {path: a, optimizer: {lr: 2.0e-6}}}\n"
                    "data: {train: p.jsonl, batch_size: 8}\n"
                    "rollout: {n: 4, temperature: 1.0}\n"
                    "algorithm: {advantage: group, kl_estimator: k1}\n"
                    "reward: {kind: rule, rule: gsm8k}\n"),
              ::testing::ElementsAre(
                "run.steps 5 0", "workflow grpo ", "data.train p.jsonl ",
                "data.batch_size 8 64", "rollout.n 4 1",
                "algorithm.kl_estimator k1 k3", "reward.kind rule model",
                "reward.rule gsm8k auto", "models.actor.path a ",
                "models.actor.optimizer.lr 2.0e-06 1.0e-05"));
}

} // namespace
