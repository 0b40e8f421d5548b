#include "config/settings/unknown_keys.hpp"

#include "tests/config/settings_fixture.hpp"
#include <gmock/gmock.h>

namespace {

using UnknownKeys = troupe::support::SettingsFixture;

TEST_F(UnknownKeys, NameTheNearestSetting) {
  EXPECT_EQ(ppo("\nrollout:\n  temprature: 1\n"),
            "x.yaml:3: rollout.temprature: expected a known setting, got "
            "'temprature'; try rollout.temperature");
  EXPECT_EQ(ppo("rolout: {n: 1}\n"),
            "x.yaml:1: rolout: expected a known setting, got 'rolout'; try "
            "rollout");
  EXPECT_EQ(ppo("run: {batch_size: 1}\n"),
            "x.yaml:1: run.batch_size: expected a known setting, got "
            "'batch_size'; try data.batch_size");
  EXPECT_EQ(ppo("models: {actor: {lr: 1}}\n"),
            "x.yaml:1: models.actor.lr: expected a known setting, got 'lr'; "
            "try models.actor.optimizer.lr");
  EXPECT_EQ(over("rollout.tmperature=1"),
            "command line: rollout.tmperature: expected a known setting, got "
            "'tmperature'; try rollout.temperature");
  EXPECT_EQ(ppo("run.steps: 5\n"),
            "x.yaml:1: run.steps: expected a known setting, got 'run.steps'; "
            "try nesting it instead of writing dots");
}

TEST_F(UnknownKeys, KeysOfOtherSystemsAreTranslated) {
  EXPECT_EQ(ppo("actor_rollout_ref:\n  rollout:\n    n: 4\n"),
            "x.yaml:3: actor_rollout_ref.rollout.n: expected a setting of "
            "Troupe, got one of verl; try rollout.n");
  EXPECT_EQ(ppo("algorithm: {adv_estimator: gae}\n"),
            "x.yaml:1: algorithm.adv_estimator: expected a setting of Troupe, "
            "got one of verl; try algorithm.advantage (gae "
            "in workflow ppo, the others in grpo)");
  EXPECT_EQ(over("init_kl_coef=0.1"),
            "command line: init_kl_coef: expected a setting of Troupe, got "
            "one of OpenRLHF; try algorithm.kl_coef");
  EXPECT_EQ(over("algorithm.num_ppo_epochs=4"),
            "command line: algorithm.num_ppo_epochs: expected a setting of "
            "Troupe, got TRL's num_ppo_epochs; try algorithm.epochs");
  EXPECT_EQ(over("models.critic.learning-rate=1"),
            "command line: models.critic.learning-rate: expected a setting of "
            "Troupe, got TRL's learning_rate; try models.critic.optimizer.lr");
}

TEST_F(UnknownKeys, SuggestionsAreSimilarAndOfTheWorkflow) {
  EXPECT_EQ(over("rollout.max_tokens=9"),
            "command line: rollout.max_tokens: expected a known setting, got "
            "'max_tokens'; try rollout.max_new_tokens");
  EXPECT_EQ(error({"sft.yaml"}, {"algorithm.gama=1"}),
            "command line: algorithm.gama: expected a known setting, got "
            "'gama'; try removing it (workflow sft does not read "
            "algorithm.gamma)");
  EXPECT_EQ(over("run.output=x"),
            "command line: run.output: expected a known setting, got 'output'; "
            "try 'troupe explain run'");
  EXPECT_EQ(over("logging.level=x"),
            "command line: logging: expected a known setting, got 'logging'; "
            "try 'troupe explain'");
  EXPECT_EQ(over("trace.wandb=true"),
            "command line: trace.wandb: expected a known setting, got "
            "'wandb'; try metrics.wandb");
  EXPECT_EQ(over("metrics.wandb=pets"), "no error");
}

TEST_F(UnknownKeys, AForeignNameInAKnownSectionRefersToThatSection) {
  EXPECT_EQ(over("models.actor.optimizer.beta=1"),
            "command line: models.actor.optimizer.beta: expected a known "
            "setting, got 'beta'; try models.actor.optimizer.betas");
  EXPECT_THAT(over("models.actor.optim.beta=1"),
              ::testing::Not(::testing::HasSubstr("TRL")));
  for (const char* key :
       {"models.actor.optimizer.epsilon=1", "optimizer.epsilon=1",
        "rollout.delta=1", "reward.max_steps=1"})
    EXPECT_THAT(over(key), ::testing::AllOf(
                             ::testing::HasSubstr("expected a known setting"),
                             ::testing::Not(::testing::HasSubstr("TRL"))))
      << key;
  EXPECT_THAT(over("algorithm.delta=1"),
              ::testing::EndsWith("got TRL's delta; try algorithm.dual_clip"));
  EXPECT_THAT(over("models.actor.optim.learning_rate=1"),
              ::testing::EndsWith("try models.actor.optimizer.lr"));
  // no setting of ours has this name, and sft has no rollout
  EXPECT_THAT(over("train_args.delta=1"),
              ::testing::EndsWith("got TRL's delta; try algorithm.dual_clip"));
  EXPECT_THAT(error({"sft.yaml"}, {"rollout.max_steps=1"}),
              ::testing::EndsWith("got TRL's max_steps; try run.steps"));
}

TEST_F(UnknownKeys, AForeignNameRefersToSettingsOfTheWorkflow) {
  EXPECT_THAT(over("max_length=9"),
              ::testing::EndsWith("try data.max_prompt_tokens and "
                                  "rollout.max_new_tokens, which add up to "
                                  "it"));
  EXPECT_THAT(error({"sft.yaml"}, {"max_length=9"}),
              ::testing::EndsWith("got one of TRL; try "
                                  "data.max_tokens"));
  EXPECT_THAT(error({"sft.yaml"}, {"num_generations=9"}),
              ::testing::EndsWith("try leaving it out (workflow sft has no "
                                  "rollout.n)"));
  EXPECT_THAT(error({}, {"workflow=reward", "learning_rate=9"}),
              ::testing::EndsWith("try models.reward.optimizer.lr"));
}

TEST_F(UnknownKeys, AWholeFileOfAnotherSystemIsReportedAtOnce) {
  write("verl.yaml", "actor_rollout_ref:\n"
                     "  model: {path: q3, use_shm: false}\n"
                     "  actor:\n"
                     "    optim: {lr: 1.0e-6}\n"
                     "    use_torch_compile: true\n"
                     "  rollout: {name: vllm, n: 5}\n"
                     "algorithm: {adv_estimator: grpo}\n"
                     "data: {train_files: x.parquet, batch_size: many}\n"
                     "trainer: {logger: [wandb], nccl_timeout: 600}\n");
  const auto lines = errors({"verl.yaml"}, {});
  EXPECT_THAT(
    lines,
    ::testing::ElementsAre(
      ::testing::StartsWith("verl.yaml: workflow: expected one of sft"),
      ::testing::EndsWith("try models.actor.path"),
      ::testing::EndsWith("try models.actor.optimizer.lr"),
      ::testing::StartsWith(
        "verl.yaml:6: actor_rollout_ref.rollout.name: expected a setting of "
        "Troupe, got one of verl; try leaving it "
        "out"),
      ::testing::EndsWith("try rollout.n"),
      "verl.yaml:1: actor_rollout_ref: expected settings of Troupe, got 2 keys "
      "without an equal here (model.use_shm, actor.use_torch_compile); try "
      "leaving them out",
      ::testing::HasSubstr("try algorithm.advantage"),
      ::testing::HasSubstr("try data.train"),
      ::testing::HasSubstr("data.batch_size: expected a whole number >= 1"),
      ::testing::HasSubstr("metrics.wandb: PROJECT"),
      ::testing::StartsWith("verl.yaml:9: trainer: expected settings of "
                            "Troupe, got 1 key without an equal here")));
}

} // namespace
