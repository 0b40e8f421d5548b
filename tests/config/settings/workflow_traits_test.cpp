#include "config/settings/settings.hpp"
#include "config/settings/settings_schema.hpp"
#include "config/settings/workflow_traits.hpp"

#include <gmock/gmock.h>

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using troupe::SettingsGroup;

/// A workflow of this test program: responses, one scored role, one trained.
void add_duel() {
  troupe::add_workflow_traits(
    {.name = "duel",
     .sentence = "two answers compete",
     .groups = {SettingsGroup::rollout, SettingsGroup::updates},
     .roles = {{.name = "player", .trained = true},
               {.name = "old",
                .needs_key = "rollout.top_k",
                .needs_value = {"5"},
                .default_path_of = "player"}}});
}

constexpr auto duel_text = "workflow: duel\n"
                           "run: {steps: 1}\n"
                           "models: {player: {path: p}}\n"
                           "data: {train: d.jsonl}\n";

std::string traits_complaint(const std::string& more) {
  try {
    troupe::parse_settings(duel_text + more, "duel.yaml");
  } catch (const troupe::ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

struct WorkflowTraits : ::testing::Test {
  WorkflowTraits() {
    add_duel();
  }
  ~WorkflowTraits() override {
    troupe::forget_user_sections();
    troupe::forget_added_workflows();
  }
};

TEST_F(WorkflowTraits, AnAddedWorkflowIsAcceptedBySettings) {
  const auto settings = troupe::parse_settings(duel_text, "duel.yaml");
  EXPECT_FALSE(settings.models.contains("old"));
  const auto with_old = troupe::parse_settings(
    std::string(duel_text) + "rollout: {top_k: 5}\n", "duel.yaml");
  EXPECT_EQ(with_old.models.at("old").path, "p");
  const auto text = troupe::print_settings(with_old);
  EXPECT_THAT(text, HasSubstr("mini_batches: 4"));
  EXPECT_EQ(text.find("clip_ratio"), text.npos);
  EXPECT_EQ(troupe::parse_settings(text, "again.yaml"), with_old);
}

TEST_F(WorkflowTraits, SettingsOfOtherGroupsAreRefused) {
  EXPECT_EQ(traits_complaint("algorithm: {mini_batches: 2}\n"), "accepted");
  EXPECT_THAT(traits_complaint("algorithm: {gamma: 0.5}\n"),
              HasSubstr("duel.yaml:5: algorithm.gamma: expected only settings "
                        "that workflow duel uses"));
  EXPECT_THAT(traits_complaint("reward: {scale: 1}\n"),
              HasSubstr("reward.scale: expected only settings that workflow"));
}

TEST_F(WorkflowTraits, ATakenNameIsRefused) {
  try {
    troupe::add_workflow_traits({.name = "ppo", .sentence = "mine"});
    FAIL();
  } catch (const troupe::ConfigError& error) {
    EXPECT_STREQ(error.what(), "workflow: expected a new name, got 'ppo', "
                               "which is there already; try another name");
  }
}

TEST_F(WorkflowTraits, ReadersOfSettingsAreNamed) {
  const auto readers = [](const char* path) {
    return troupe::readers_of(*troupe::find_field(path).first);
  };
  EXPECT_THAT(readers("algorithm.gamma"), ElementsAre("ppo", "grpo"));
  EXPECT_THAT(readers("rollout.greedy"), ElementsAre("generate"));
  EXPECT_THAT(readers("run.name"), ElementsAre());
  EXPECT_THAT(troupe::explain_settings("data.max_tokens"),
              HasSubstr("workflow sft, reward, dpo or kto"));
}

} // namespace
