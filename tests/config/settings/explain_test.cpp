#include "config/settings/settings.hpp"
#include "config/settings/settings_schema.hpp"

#include <gmock/gmock.h>

#include <sstream>

namespace {

using ::testing::HasSubstr;
using troupe::explain_settings;

TEST(Explain, OneSettingHasDefaultRangeAndSentence) {
  EXPECT_EQ(explain_settings("rollout.top_k"),
            "rollout.top_k: 0\n"
            "  a whole number >= 0, default 0\n"
            "  Samples among the k likeliest tokens. 0: all.\n");
  EXPECT_THAT(explain_settings("models.critic.path"),
              HasSubstr("models.critic.path: required\n"));
  EXPECT_THAT(explain_settings("algorithm.advantage"),
              HasSubstr("one of gae, group, rloo, remax or reinforce_pp"));
  EXPECT_THAT(explain_settings("cluster.lost_node"),
              HasSubstr("one of fail, wait or shrink"));
  EXPECT_THAT(explain_settings("reward.command"),
              HasSubstr("only with reward.kind: process"));
}

TEST(Explain, TheWholePageIsYamlWithEverySettingAndItsDefault) {
  const auto page = explain_settings("");
  const auto tree = troupe::parse_yaml(page, "explain");
  for (const auto& field : troupe::settings_fields()) {
    const auto path = troupe::path_with_role(field.path, "actor");
    const auto* node = tree.find_path(path);
    ASSERT_NE(node, nullptr) << path;
    if (node->is_scalar()) {
      EXPECT_EQ(troupe::print_yaml_scalar(node->text), default_text(field));
    }
  }
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), 80u) << line;
}

TEST(Explain, ASectionShowsItsOwnSettings) {
  const auto rollout = explain_settings("rollout");
  EXPECT_THAT(rollout, HasSubstr("  temperature: 1\n"));
  EXPECT_THAT(rollout, ::testing::Not(HasSubstr("gamma")));
  EXPECT_THAT(explain_settings("models.critic"), HasSubstr("  critic:\n"));
  EXPECT_THAT(explain_settings("models.critic.optimizer"),
              HasSubstr("      lr: 1.0e-05\n"));
}

TEST(Explain, AnUnknownKeyNamesTheNearest) {
  try {
    explain_settings("rollout.temprature");
    FAIL();
  } catch (const troupe::ConfigError& error) {
    EXPECT_STREQ(error.what(), "command line: expected a known setting, got "
                               "'rollout.temprature'; try rollout.temperature");
  }
}

} // namespace
