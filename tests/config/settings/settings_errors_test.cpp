// The exact lines that users see for wrong settings.

#include "tests/config/settings_fixture.hpp"
#include <gmock/gmock.h>

namespace {

using ::testing::HasSubstr;
using SettingsErrors = troupe::support::SettingsFixture;

TEST_F(SettingsErrors, AValidFileIsAccepted) {
  EXPECT_EQ(ppo(""), "no error");
  EXPECT_EQ(sft(""), "no error");
}

TEST_F(SettingsErrors, ValuesOfAWrongTypeNameTheExpectedType) {
  EXPECT_EQ(ppo("run:\n  steps: ten\n"),
            "x.yaml:2: run.steps: expected a whole number >= 0, got 'ten'; try "
            "'troupe explain run.steps'");
  EXPECT_EQ(ppo("data: {batch_size: 64.0}\n"),
            "x.yaml:1: data.batch_size: expected a whole number >= 1, got "
            "'64.0'; try 64");
  EXPECT_EQ(ppo("data: {batch_size: 0}\n"),
            "x.yaml:1: data.batch_size: expected a whole number >= 1, got '0'; "
            "try 1");
  EXPECT_EQ(ppo("data: {batch_size: '8'}\n"),
            "x.yaml:1: data.batch_size: expected a whole number >= 1, got "
            "'8'; try 8");
  EXPECT_EQ(ppo("data: {batch_size: 99999999999}\n"),
            "x.yaml:1: data.batch_size: expected a whole number >= 1, got "
            "'99999999999'; try 64");
  EXPECT_EQ(ppo("rollout: {temperature: hot}\n"),
            "x.yaml:1: rollout.temperature: expected a number > 0, got 'hot'; "
            "try 1");
  EXPECT_EQ(ppo("rollout: {temperature: .nan}\n"),
            "x.yaml:1: rollout.temperature: expected a number > 0, got "
            "'.nan'; try 1");
  EXPECT_EQ(ppo("rollout: {top_p: 1.5}\n"),
            "x.yaml:1: rollout.top_p: expected a number > 0 and <= 1, got "
            "'1.5'; try 1");
  EXPECT_EQ(ppo("rollout: {min_p: [1]}\n"),
            "x.yaml:1: rollout.min_p: expected a number from 0 to 1, got [1]; "
            "try 'troupe explain rollout.min_p'");
  EXPECT_EQ(ppo("algorithm: {whiten: 1}\n"),
            "x.yaml:1: algorithm.whiten: expected true or false, got '1'; try "
            "true");
  EXPECT_EQ(ppo("algorithm: {clip_ratio: [0.1]}\n"),
            "x.yaml:1: algorithm.clip_ratio: expected a number > 0 or [low, "
            "high], got [0.1]; try [0.2, 0.28]");
  EXPECT_EQ(ppo("models: {actor: {optimizer: {betas: [0.9, 1]}}}\n"),
            "x.yaml:1: models.actor.optimizer.betas: expected two numbers >= 0 "
            "and < 1 in [ ], got [0.9, 1]; try [0.9, 0.95]");
  EXPECT_EQ(over("rollout.stop=x"),
            "command line: rollout.stop: expected a list of texts, got 'x'; "
            "try [x]");
  EXPECT_EQ(over("run.seed=-1"),
            "command line: run.seed: expected a whole number >= 0, got '-1'; "
            "try 0");
  EXPECT_EQ(over("cluster.nodes=some"),
            "command line: cluster.nodes: expected auto or a whole number >= "
            "1, got 'some'; try auto");
  EXPECT_EQ(over("data.fields=x"),
            "command line: data.fields: expected a mapping of names to texts, "
            "got 'x'; try {name: value}");
}

TEST_F(SettingsErrors, UnknownChoicesNameTheNearest) {
  EXPECT_EQ(over("workflow=pop"),
            "command line: workflow: expected one of "
            "sft, reward, dpo, kto, ppo, grpo or distillation, got "
            "'pop'; try ppo");
  EXPECT_EQ(over("data.overlong=truncated"),
            "command line: data.overlong: expected one of skip, truncate or "
            "error, got 'truncated'; try truncate");
}

TEST_F(SettingsErrors, FormatsOfStringsAreChecked) {
  EXPECT_EQ(over("run.max_time=soon"),
            "command line: run.max_time: expected a duration such as 90m, "
            "3h30m or 11:30:00, got 'soon'; try 'troupe explain "
            "run.max_time'");
  EXPECT_EQ(over("cluster.ports=1-99999"),
            "command line: cluster.ports: expected auto or FIRST-LAST with "
            "ports from 1 to 65535, got '1-99999'; try auto");
  EXPECT_EQ(over("run.name=a/b"), "command line: run.name: expected a name in "
                                  "one line without '/', got 'a/b'; try "
                                  "'troupe explain run.name'");
  for (const char* name :
       {"run.name=x\ntouch pwned #", "run.name=a\xff", "run.dir=x\ny"})
    EXPECT_THAT(over(name), HasSubstr("in one line")) << name;
  EXPECT_THAT(over("cluster.hosts=[a, -oProxyCommand=x]"),
              HasSubstr("cluster.hosts: expected a list of host names"));
}

TEST_F(SettingsErrors, SectionsMustBeMappings) {
  EXPECT_EQ(ppo("rollout: 5\n"),
            "x.yaml:1: rollout: expected a mapping of settings, got '5'; try "
            "'troupe explain rollout'");
  EXPECT_EQ(ppo("models: {actor: some/path}\n"),
            "x.yaml:1: models.actor: expected a mapping of settings, got "
            "'some/path'; try 'troupe explain models.actor'");
  EXPECT_EQ(ppo("- a\n"), "x.yaml:1: expected a mapping of settings, got a "
                          "list; try 'troupe explain'");
}

TEST_F(SettingsErrors, IgnoredSettingsAreRefused) {
  EXPECT_EQ(sft("rollout:\n  temperature: 1\n"), // also a default
            "x.yaml:2: rollout.temperature: expected only settings that "
            "workflow sft uses, got one that it would ignore; try removing it "
            "(rollout.temperature=null)");
  EXPECT_EQ(sft("algorithm: {recompute: true}\n"), "no error");
  EXPECT_EQ(ppo("reward: {rule: math}\n"),
            "x.yaml:1: reward.rule: expected reward.kind to be rule, got "
            "model, which ignores this setting; try removing it "
            "(reward.rule=null)");
  EXPECT_EQ(ppo("run: {epochs: 2}\n"),
            "x.yaml:1: run.epochs: expected only settings that workflow ppo "
            "uses, got one that it would ignore; try removing it "
            "(run.epochs=null)");
  EXPECT_EQ(ppo("models: {ref: {optimizer: {lr: 1}}}\n"),
            "x.yaml:1: models.ref.optimizer.lr: expected it only for roles "
            "that workflow ppo trains, got it for 'ref'; try removing it "
            "(models.ref.optimizer.lr=null)");
  EXPECT_EQ(ppo("models: {actor: {ema_decay: 0.9}}\n"),
            "x.yaml:1: models.actor.ema_decay: expected it only for roles that "
            "workflow ppo does not train, got it for 'actor'; try removing it "
            "(models.actor.ema_decay=null)");
  EXPECT_EQ(ppo("models: {ref: {ema_decay: 1.5}}\n"),
            "x.yaml:1: models.ref.ema_decay: expected a number from 0 to 1, "
            "got '1.5'; try 1");
  EXPECT_EQ(ppo("models: {ref: {path: x}}\nalgorithm: {kl_in: none}\n"),
            "x.yaml:1: models.ref.path: expected only models that the run "
            "uses, got 'ref', which it would ignore; try removing it "
            "(models.ref.path=null)");
  EXPECT_EQ(ppo("algorithm: {kl_in: none, kl_coef: 0.5}\n"),
            "x.yaml:1: algorithm.kl_coef: expected algorithm.kl_in to be "
            "reward or loss, got none, which ignores this setting; try "
            "removing it (algorithm.kl_coef=null)");
  EXPECT_EQ(ppo("algorithm: {kl_horizon: 5}\n"),
            "x.yaml:1: algorithm.kl_horizon: expected algorithm.kl_target set, "
            "got 0, which ignores this setting; try removing it "
            "(algorithm.kl_horizon=null)");
  EXPECT_EQ(ppo("eval: {every: 5}\n"),
            "x.yaml:1: eval.every: expected eval.data set, got \"\", which "
            "ignores this setting; try removing it (eval.every=null)");
}

TEST_F(SettingsErrors, ALimitOfTheLagIsANumberOfStepsWhereSomethingGenerates) {
  for (const auto* word : {"0", "8", "auto"})
    EXPECT_EQ(over(std::string("algorithm.max_lag=") + word), "no error");
  EXPECT_EQ(over("algorithm.max_lag=9"),
            "command line: algorithm.max_lag: expected auto or a whole number "
            "from 0 to 8, got '9'; try 8");
  EXPECT_EQ(sft("algorithm: {max_lag: 1}\n"),
            "x.yaml:1: algorithm.max_lag: expected only settings that workflow "
            "sft uses, got one that it would ignore; try removing it "
            "(algorithm.max_lag=null)");
}

TEST_F(SettingsErrors, AnExplicitDefaultIsAcceptedInAUsedSection) {
  EXPECT_EQ(ppo("reward: {rule: auto, workers: 8}\nalgorithm: {beta: 0.1}\n"),
            "no error");
}

TEST_F(SettingsErrors, UnsupportedSettingsAreRefused) {
  EXPECT_EQ(over("cluster.silence_s=90"),
            "command line: cluster.silence_s: expected auto or a whole number "
            "from 2 to 89, got '90'; try 89");
  EXPECT_EQ(over("cluster.lost_node=wiat"),
            "command line: cluster.lost_node: expected one of fail, wait or "
            "shrink, got 'wiat'; try wait");
}

TEST_F(SettingsErrors, RulesOfRewardsMustExist) {
  const auto rule = [](const std::string& text) {
    return error({"ppo.yaml"},
                 {"models.reward=null", "reward.kind=rule", text});
  };
  EXPECT_EQ(rule("reward.rule=gsm8k"), "no error");
  EXPECT_EQ(rule("reward.rule=regex:a:b"), "no error");
  EXPECT_EQ(rule("reward.rule=gms8k"),
            "command line: reward.rule: expected one of auto, exact, gsm8k, "
            "number, boxed, regex, format or length, got 'gms8k'; try gsm8k");
  EXPECT_EQ(rule("reward.rule=length"),
            "command line: reward.rule: expected length:N with the most tokens "
            "N >= 1, got 'length'; try length:200");
  EXPECT_EQ(rule("reward.rule=exact:no"),
            "command line: reward.rule: expected exact without an argument, "
            "got 'exact:no'; try exact");
  EXPECT_EQ(rule("reward.weights={gsm8k: 1, formad: 0.1}"),
            "command line: reward.weights: expected one of auto, exact, gsm8k, "
            "number, boxed, regex, format or length, got 'formad'; try format");
  EXPECT_EQ(rule("reward.workers=3"),
            "command line: reward.workers: expected reward.kind to be python, "
            "process or http, got rule, which ignores this setting; try "
            "removing it (reward.workers=null)");
}

TEST_F(SettingsErrors, ThePortOfThePageMustBeAPort) {
  EXPECT_EQ(over("trace.port=8080"), "no error");
  EXPECT_EQ(over("trace.port=70000"),
            "command line: trace.port: expected auto or a whole number from 1 "
            "to 65535, got '70000'; try 65535");
}

TEST_F(SettingsErrors, RequiredSettingsAreNamed) {
  EXPECT_EQ(
    error({"ppo.yaml"}, {"workflow=null"}),
    "ppo.yaml: workflow: expected one of sft, reward, dpo, kto, ppo, grpo "
    "or distillation, got "
    "nothing");
  EXPECT_EQ(over("run.steps=null"), "ppo.yaml: run.steps: expected a whole "
                                    "number >= 1, got nothing; try "
                                    "run.steps=100");
  EXPECT_EQ(over("run.steps=0"), "command line: run.steps: expected a whole "
                                 "number >= 1, got 0; try run.steps=100");
  EXPECT_EQ(sft("run: {steps: null}\n"),
            "x.yaml: run.steps: expected run.steps or run.epochs >= 1, got "
            "nothing; try run.steps=100");
  EXPECT_EQ(sft("run: {epochs: 3}\n"),
            "x.yaml:1: run.epochs: expected run.steps or run.epochs, got both; "
            "try run.steps=null");
  EXPECT_EQ(over("models.critic=null"),
            "ppo.yaml: models.critic.path: expected a folder in Hugging Face "
            "format, got nothing; try models.critic.path=FOLDER");
  EXPECT_EQ(over("models.actor.path="),
            "command line: models.actor.path: expected a folder in Hugging "
            "Face format, got nothing; try models.actor.path=FOLDER");
  EXPECT_EQ(over("data.train=null"),
            "ppo.yaml: data.train: expected a JSONL file, got nothing; try "
            "data.train=FILE");
}

TEST_F(SettingsErrors, OnlySettingsCanBeRemoved) {
  EXPECT_EQ(over("algorithm.gama=null"),
            "command line: algorithm.gama: expected a known setting, got "
            "'gama'; try algorithm.gamma");
  EXPECT_EQ(sft("run: {stepz: null}\n"),
            "x.yaml:1: run.stepz: expected a known setting, got 'stepz'; try "
            "run.steps");
  EXPECT_EQ(over("data.fields.prompt=null"), "no error");
  EXPECT_EQ(over("models.reward.optimizer=null"), "no error");
}

TEST_F(SettingsErrors, RolesMustBelongToTheWorkflow) {
  EXPECT_EQ(ppo("models: {acter: {path: x}}\n"),
            "x.yaml:1: models.acter: expected a role of workflow ppo (actor, "
            "critic, ref, reward or opponent), got 'acter'; try models.actor");
  EXPECT_EQ(sft("models: {critic: {path: x}}\n"),
            "x.yaml:1: models.critic: expected a role of workflow sft (actor), "
            "got 'critic'; try removing it (models.critic=null)");
}

TEST_F(SettingsErrors, AMissingRewardModelNamesTheAlternatives) {
  EXPECT_EQ(error({"ppo.yaml"}, {"models.reward=null"}),
            "ppo.yaml: models.reward.path: expected a folder in Hugging Face "
            "format, got nothing; try models.reward.path=FOLDER, or rewards "
            "without a model (reward.kind: rule, python, process, http or "
            "agents), as reward.kind=rule reward.rule=gsm8k");
}

TEST_F(SettingsErrors, SizesMustFitEachOther) {
  EXPECT_EQ(ppo("rollout: {min_new_tokens: 9, max_new_tokens: 8}\n"),
            "x.yaml:1: rollout.min_new_tokens: expected a whole number <= "
            "rollout.max_new_tokens (8), got '9'; try 8");
  EXPECT_EQ(ppo("data: {batch_size: 2}\n"),
            "x.yaml:1: algorithm.mini_batches: expected at most the samples of "
            "a step (2), got '4'; try 2");
  EXPECT_EQ(ppo("data: {batch_size: 8}\nrollout: {n: 2000000000}\n"),
            "x.yaml:2: rollout.n: expected at most 2147483647 samples a step, "
            "got 8 rows of 2000000000; try 268435455");
}

TEST_F(SettingsErrors, OverridesNeedKeyAndValue) {
  EXPECT_EQ(over("run.steps"), "command line: expected key=value, got "
                               "'run.steps'; try run.steps=5");
  EXPECT_EQ(over("=5"),
            "command line: expected key=value, got '=5'; try run.steps=5");
  EXPECT_EQ(over("run..steps=5"), "command line: expected key=value, got "
                                  "'run..steps=5'; try run.steps=5");
  EXPECT_THAT(over("algorithm.clip_ratio=[0.1"),
              ::testing::StartsWith("command line:"));
}

TEST_F(SettingsErrors, MissingAndBrokenFilesAreNamed) {
  EXPECT_EQ(error({"none.yaml"}, {}),
            "none.yaml: expected a readable YAML file, got none; try "
            "examples/tiny/ppo.yaml");
  EXPECT_THAT(ppo("a: [1\n"), ::testing::StartsWith("x.yaml:2: expected YAML"));
  EXPECT_EQ(error({}, {}),
            "command line: workflow: expected one of sft, "
            "reward, dpo, kto, ppo, grpo or distillation, got nothing");
}

} // namespace
