#include "config/settings/foreign_keys.hpp"
#include "config/settings/settings.hpp"

#include <gtest/gtest.h>

namespace {

TEST(ForeignKeys, NameExistingSettings) {
  for (const auto& table :
       {troupe::verl_translations(), troupe::openrlhf_translations(),
        troupe::trl_translations()})
    for (const auto& row : table) {
      const auto key = troupe::key_of(row);
      if (!key.empty()) {
        EXPECT_NO_THROW(troupe::explain_settings(key)) << row.theirs;
      }
    }
}

TEST(ForeignKeys, FlagsAreFoundWithDashesAndInSections) {
  for (const char* key :
       {"trainer.save_freq", "max_steps", "--n-samples-per-prompt"})
    EXPECT_FALSE(troupe::find_translations(key).empty()) << key;
  EXPECT_TRUE(troupe::find_translations("algorithm.num_ppo_epochs").empty());
  const auto by_last_part = troupe::find_translations_by_last_part;
  EXPECT_FALSE(by_last_part("algorithm.num_ppo_epochs").empty());
  EXPECT_TRUE(by_last_part("rollout.temprature").empty());
  // a section that only verl has contains no flags of others
  EXPECT_TRUE(by_last_part("reward_model.max_length").empty());
}

TEST(ForeignKeys, ExplainDifferentUnitsAndMeanings) {
  const auto first = [](const char* key) {
    return std::string(troupe::find_translations(key).at(0)->ours);
  };
  EXPECT_EQ(first("missing_eos_penalty"),
            "reward.missing_eos (replaces the reward; TRL subtracts, so give a "
            "negative number)");
  for (const char* key : {"enable_ema", "ema_beta"})
    EXPECT_EQ(first(key),
              "leaving it out (no averaged copy of the actor is kept)");
  for (const char* key : {"vllm_gpu_memory_utilization",
                          "actor_rollout_ref.rollout.gpu_memory_utilization"})
    EXPECT_EQ(first(key),
              "rollout.kv_cache_gb: auto (a size in GB, not a share)");
}

} // namespace
