// Lengths beyond a model's context are refused before a run starts.
#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "models/data/dataset.hpp"
#include "plans/workflow/workflow.hpp"
#include "runtime/run_folder/context_limits.hpp"

#include <gtest/gtest.h>

#include "tests/support/runtime/tiny_model.hpp"
#include "tests/support/temp_folder.hpp"

#include <fstream>

namespace troupe::runtime {
namespace {

Settings settings_of(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(),
                   {"run.steps=1", "models.actor.path=a", "data.train=rows"});
  return load_settings({}, overrides);
}

Settings grpo_settings(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(),
                   {"workflow=grpo", "rollout.n=4", "reward.kind=rule"});
  return settings_of(std::move(overrides));
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

/// Roles of 1,024 positions, except for that of `changed`.
std::string allowed(const Settings& settings,
                    const std::map<std::string, ModelShape>& changed = {}) {
  const auto workflow = plans::make_workflow(settings);
  RoleShapes shapes = changed;
  for (const auto& role : workflow.roles)
    if (!shapes.contains(role.name))
      shapes[role.name].max_positions = 1024;
  return refusal([&] { check_allowed_lengths(settings, workflow, shapes); });
}

TEST(ContextLimits, PromptAndResponseMustFitTheModel) {
  EXPECT_EQ(allowed(grpo_settings(
              {"data.max_prompt_tokens=768", "rollout.max_new_tokens=256"})),
            "none");
  EXPECT_EQ(allowed(grpo_settings(
              {"data.max_prompt_tokens=769", "rollout.max_new_tokens=256"})),
            "command line: data.max_prompt_tokens: expected at most 768, the "
            "1024 positions of actor less rollout.max_new_tokens (256), got "
            "769; try data.max_prompt_tokens=768");
  EXPECT_EQ(allowed(grpo_settings(
              {"data.max_prompt_tokens=2000", "rollout.max_new_tokens=2000"})),
            "command line: rollout.max_new_tokens: expected at most 1023 (the "
            "1024 positions of actor, max_position_embeddings of its "
            "config.json, hold a prompt too), got 2000; try "
            "rollout.max_new_tokens=512");
}

TEST(ContextLimits, TheDefaultRowLimitIsNotReportedAsTheUsers) {
  EXPECT_EQ(allowed(grpo_settings({"rollout.max_new_tokens=1000"})), "none");
}

TEST(ContextLimits, SequencesWithoutResponsesMustFitTheModel) {
  EXPECT_EQ(allowed(settings_of({"workflow=sft", "data.max_tokens=1025"})),
            "command line: data.max_tokens: expected at most 1024, the 1024 "
            "positions of actor (max_position_embeddings of its config.json), "
            "got 1025; try data.max_tokens=1024");
  EXPECT_NE(allowed(settings_of({"workflow=dpo", "data.max_tokens=2000"})),
            "none");
}

TEST(ContextLimits, TheRoleWithTheShortestContextDecides) {
  ModelShape reference;
  reference.max_positions = 512;
  const auto settings = grpo_settings(
    {"data.max_prompt_tokens=500", "rollout.max_new_tokens=100"});
  EXPECT_EQ(allowed(settings, {{"ref", reference}}),
            "command line: data.max_prompt_tokens: expected at most 412, the "
            "512 positions of ref less rollout.max_new_tokens (100), got 500; "
            "try data.max_prompt_tokens=412");
}

TEST(ContextLimits, LinearRopeScalingLengthensTheContext) {
  ModelShape scaled;
  scaled.max_positions = 1024;
  scaled.rope.scaling = RopeScaling::linear;
  scaled.rope.factor = 4;
  const auto settings = settings_of({"workflow=sft", "data.max_tokens=4096"});
  EXPECT_EQ(allowed(settings, {{"actor", scaled}}), "none");
}

TEST(ContextLimits, ALongRowIsRefusedWithItsLine) {
  const support::TempFolder folder;
  const auto file = folder.path() / "rows.jsonl";
  std::ofstream(file) << R"({"prompt_ids": [1, 2]})"
                      << "\n"
                      << R"({"prompt_ids": [1, 2, 3, 4, 5]})"
                      << "\n";
  test::write_tiny_model(folder.path());
  models::DatasetOptions options;
  options.files = {file};
  const auto rows = models::Dataset::open(
    options, models::Tokenizer::load_if_any(folder.path()));
  const auto settings = grpo_settings({"rollout.max_new_tokens=12"});
  const auto workflow = plans::make_workflow(settings);
  RoleShapes shapes;
  for (const auto& role : workflow.roles)
    shapes[role.name].max_positions = 16;
  EXPECT_EQ(
    refusal([&] { check_row_lengths(settings, workflow, shapes, rows); }),
    file.string()
      + ":2: prompt: expected at most 4 tokens, the 16 positions of "
        "actor less rollout.max_new_tokens (12), got 5; try "
        "data.max_prompt_tokens=4");
}

} // namespace
} // namespace troupe::runtime
