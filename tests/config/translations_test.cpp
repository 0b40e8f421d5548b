#include "config/settings.hpp"
#include "config/translations.hpp"

#include <gtest/gtest.h>

namespace {

TEST(Translations, PointToSettingsThatExist) {
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

TEST(Translations, FlagsAreFoundWithDashesAndInSections) {
  for (const char* key : {"trainer.save_freq", "max_steps",
                          "--n-samples-per-prompt", "algorithm.num_ppo_epochs"})
    EXPECT_FALSE(troupe::find_translations(key).empty()) << key;
  EXPECT_TRUE(troupe::find_translations("rollout.temprature").empty());
  // a section of verl's alone holds no flags of others
  EXPECT_TRUE(troupe::find_translations("reward_model.max_length").empty());
}

} // namespace
