// Switching something off in a later layer also removes the settings that it
// leaves without a reader; within one file that remains a mistake.
#include "config/settings/settings.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace {

using ::testing::HasSubstr;
using troupe::load_settings;
using troupe::Settings;

class SwitchedOff : public ::testing::Test {
protected:
  SwitchedOff() {
    std::filesystem::current_path(folder_.path());
    std::ofstream("x.yaml")
      << "workflow: grpo\n"
         "run: {steps: 60}\n"
         "models: {actor: {path: a}, ref: {path: b}}\n"
         "data: {train: p.jsonl, fields: {prompt: question, x: y}}\n"
         "rollout: {n: 4, temperature: 0.7}\n"
         "algorithm: {kl_in: reward, kl_coef: 0.2, kl_target: 6, kl_horizon: "
         "9}\n"
         "reward: {kind: python, file: r.py, workers: 2, scale: 3}\n"
         "eval: {data: e.jsonl, every: 5, max_rows: 7}\n";
  }
  ~SwitchedOff() override {
    std::filesystem::current_path("/");
  }
  static Settings with(const std::vector<std::string>& overrides) {
    auto settings = load_settings({"x.yaml"}, overrides);
    // what is written to config.yaml reads back
    EXPECT_EQ(troupe::parse_settings(troupe::print_settings(settings), "y"),
              settings);
    return settings;
  }
  static std::string error(const std::vector<std::string>& overrides) {
    try {
      load_settings({"x.yaml"}, overrides);
    } catch (const troupe::ConfigError& caught) {
      return caught.what();
    }
    return "no error";
  }
  troupe::support::TempFolder folder_;
};

TEST_F(SwitchedOff, AnEmptyValueSwitchesOffItsDependents) {
  const auto settings = with({"eval.data="});
  EXPECT_EQ(settings.eval.data, "");
  EXPECT_EQ(settings.eval.every, 0);
  EXPECT_EQ(settings.eval.max_rows, 0);
  EXPECT_FALSE(troupe::was_set(settings, "eval.every"));
}

TEST_F(SwitchedOff, NullEqualsAnEmptyValue) {
  const auto settings = with({"eval.data=null"});
  EXPECT_EQ(settings.eval.data, "");
  EXPECT_EQ(settings.eval.every, 0);
  EXPECT_EQ(settings.eval.max_rows, 0);
  const auto scored = with({"reward.kind=null", "models.reward.path=r"});
  EXPECT_EQ(scored.reward.kind, "model");
  EXPECT_EQ(scored.reward.file, "");
  EXPECT_EQ(scored.reward.workers, 8);
  EXPECT_EQ(scored.reward.scale, 3) << "every kind reads it";
  // the default kl_in of grpo is loss, which has a ref and no target
  const auto in_loss = with({"algorithm.kl_in=null"});
  EXPECT_EQ(in_loss.algorithm.kl_control.target, 0);
  EXPECT_TRUE(in_loss.models.contains("ref"));
}

TEST_F(SwitchedOff, NullInALaterFileCounts) {
  std::ofstream("off.yaml") << "eval: {data: null}\n";
  EXPECT_EQ(load_settings({"x.yaml", "off.yaml"}, {}).eval.every, 0);
  EXPECT_EQ(
    load_settings({"x.yaml", "off.yaml"}, {"eval.data=z", "eval.every=2"})
      .eval.every,
    2);
}

TEST_F(SwitchedOff, OneWarningNamesAllThatIsSwitchedOff) {
  ::testing::internal::CaptureStderr();
  load_settings({"x.yaml"}, {"eval.data=null"});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "warning: config: left out, since the command line switches off "
            "what reads them: eval.every, eval.max_rows\n");
  std::ofstream("off.yaml") << "eval: {data: ''}\n";
  ::testing::internal::CaptureStderr();
  load_settings({"x.yaml", "off.yaml"}, {});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("left out, since off.yaml switches off"));
}

TEST_F(SwitchedOff, AnEmptySectionIsSwitchedOff) {
  for (const char* word : {"eval=null", "eval=~", "eval={}"}) {
    const auto settings = with({word});
    EXPECT_EQ(settings.eval.data, "") << word;
    EXPECT_EQ(settings.eval.every, 0) << word;
  }
  EXPECT_THAT(error({"eval="}), HasSubstr("try eval=null to switch it off"));
}

TEST_F(SwitchedOff, AMappingReplacesASection) {
  const auto settings = with({"reward={kind: rule, rule: gsm8k}"});
  EXPECT_EQ(settings.reward.kind, "rule");
  EXPECT_EQ(settings.reward.file, "");
  EXPECT_EQ(settings.reward.scale, 1.0);
  EXPECT_EQ(with({"rollout={n: 8}"}).rollout.temperature, 1.0);
  EXPECT_EQ(with({"data.fields={prompt: p}"}).data.fields.size(), 1u);
  EXPECT_EQ(with({"rollout={n: 8}", "rollout.top_k=3"}).rollout.top_k, 3);
}

TEST_F(SwitchedOff, NullHoldsWhenKeysFollow) {
  const auto settings
    = with({"reward=null", "reward.kind=rule", "reward.rule=gsm8k"});
  EXPECT_EQ(settings.reward.scale, 1.0);
  EXPECT_EQ(settings.reward.file, "");
}

TEST_F(SwitchedOff, AnotherKindDropsTheOldKindsSettings) {
  const auto settings = with({"reward.kind=rule", "reward.rule=gsm8k"});
  EXPECT_EQ(settings.reward.file, "");
  EXPECT_EQ(settings.reward.workers, 8);
  EXPECT_EQ(settings.reward.scale, 3) << "every kind reads it";
}

TEST_F(SwitchedOff, SwitchingOffAlsoDropsReadersAndModels) {
  const auto settings = with({"algorithm.kl_in=none"});
  EXPECT_EQ(settings.algorithm.kl_coef, 0.1);
  EXPECT_EQ(settings.algorithm.kl_control.target, 0);
  EXPECT_EQ(settings.algorithm.kl_control.horizon, 10000);
  EXPECT_FALSE(settings.models.contains("ref"));
}

TEST_F(SwitchedOff, ALaterFileMaySwitchOff) {
  std::ofstream("off.yaml") << "eval: {data: ''}\n";
  EXPECT_EQ(load_settings({"x.yaml", "off.yaml"}, {}).eval.every, 0);
}

TEST_F(SwitchedOff, OneLayerMayNotContradictItself) {
  EXPECT_THAT(error({"eval.data=null", "eval.every=3"}),
              HasSubstr("command line: eval.every: expected eval.data set"));
  EXPECT_THAT(error({"eval.data=", "eval.every=3"}),
              HasSubstr("command line: eval.every: expected eval.data set"));
  std::ofstream("x.yaml", std::ios::app) << "trace: {enabled: true}\n";
  EXPECT_THAT(error({"reward.kind=rule", "reward.file=z.py"}),
              HasSubstr("command line: reward.file: expected reward.kind to "
                        "be python"));
}

} // namespace
