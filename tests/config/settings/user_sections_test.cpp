#include "config/settings/settings.hpp"
#include "config/settings/settings_schema.hpp"
#include "config/settings/workflow_traits.hpp"

#include "troupe/section.hpp"
#include <gmock/gmock.h>

namespace {

using ::testing::HasSubstr;

struct Tool {
  std::string path;
  int tries = 3;
  float share = 0.1F;
  std::string mode = "fast";
};

/// Registers a section and a workflow that reads it, once per program.
void add_tool_section() {
  troupe::add_user_section(
    troupe::Section<Tool>("tool", "A tool.")
      .field("path", &Tool::path, "Where it is", troupe::required)
      .field("tries", &Tool::tries, "How often it is asked.")
      .at_least(1)
      .field("share", &Tool::share, "How many it gets.")
      .field("mode", &Tool::mode, "How it works.")
      .one_of({"fast", "good"})
      .parts());
  troupe::add_workflow_traits({.name = "tooled",
                               .sentence = "with a tool",
                               .groups = {troupe::SettingsGroup::rollout},
                               .roles = {{.name = "actor", .trained = true}},
                               .sections = {"tool"}});
}

constexpr auto tooled_text = "workflow: tooled\n"
                             "run: {steps: 1}\n"
                             "models: {actor: {path: p}}\n"
                             "data: {train: d.jsonl}\n";

std::string complaint(const std::string& more) {
  try {
    troupe::parse_settings(tooled_text + more, "t.yaml");
  } catch (const troupe::ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

struct UserSections : ::testing::Test {
  UserSections() {
    add_tool_section();
  }
  ~UserSections() override {
    troupe::forget_user_sections();
    troupe::forget_added_workflows();
  }
};

TEST_F(UserSections, HaveNoKeysOfOtherSystems) {
  EXPECT_EQ(complaint("tool: {path: x, delta: 1}\n"),
            "t.yaml:5: tool.delta: expected a known setting, got 'delta'; try "
            "'troupe explain tool'");
  EXPECT_THAT(complaint("tool: {path: x, treis: 1}\n"),
              HasSubstr("try tool.tries"));
}

TEST_F(UserSections, AreReadPrintedAndComparedLikeBuiltInSections) {
  const auto settings = troupe::parse_settings(
    std::string(tooled_text) + "tool: {path: here, tries: 7}\n", "t.yaml");
  const auto& tool = std::any_cast<const Tool&>(settings.user.at("tool"));
  EXPECT_EQ(tool.path, "here");
  EXPECT_EQ(tool.tries, 7);
  EXPECT_EQ(tool.mode, "fast");
  const auto text = troupe::print_settings(settings);
  EXPECT_THAT(text, HasSubstr("tries: 7"));
  const auto again = troupe::parse_settings(text, "again.yaml");
  EXPECT_EQ(again, settings);
  auto other = again;
  std::any_cast<Tool&>(other.user.at("tool")).tries = 8;
  EXPECT_THAT(troupe::settings_difference(again, other),
              ::testing::ElementsAre("tool.tries"));
}

TEST_F(UserSections, AFloatKeepsItsDigitsWhenPrinted) {
  const auto settings = troupe::parse_settings(
    std::string(tooled_text) + "tool: {path: here, share: 0.3}\n", "t.yaml");
  const auto& tool = std::any_cast<const Tool&>(settings.user.at("tool"));
  EXPECT_EQ(tool.share, 0.3F);
  EXPECT_THAT(troupe::print_settings(settings), HasSubstr("share: 0.3,"));
  EXPECT_THAT(troupe::explain_settings("tool"), HasSubstr("share: 0.1\n"));
  EXPECT_THAT(complaint("tool: {path: x, share: half}\n"),
              HasSubstr("tool.share: expected a number, got 'half'"));
  EXPECT_THAT(complaint("tool: {path: x, share: 1e39}\n"),
              HasSubstr("tool.share: expected a number, got '1e39'"));
}

TEST_F(UserSections, MistakesNameTheKeyAndWhatWasExpected) {
  EXPECT_THAT(complaint("tool: {tries: 7}\n"),
              HasSubstr("tool.path: expected text, got nothing"));
  EXPECT_THAT(complaint("tool: {path: x, tries: 0}\n"),
              HasSubstr("t.yaml:5: tool.tries: expected a whole number >= 1"));
  EXPECT_THAT(complaint("tool: {path: x, mode: god}\n"),
              HasSubstr("one of fast or good, got 'god'; try good"));
  EXPECT_THAT(complaint("tool: {path: x, trise: 2}\n"),
              HasSubstr("tool.trise: expected a known setting, got 'trise'; "
                        "try tool.tries"));
}

TEST_F(UserSections, BelongToTheirWorkflows) {
  try {
    troupe::parse_settings("workflow: sft\nrun: {steps: 1}\n"
                           "models: {actor: {path: p}}\n"
                           "data: {train: d.jsonl}\ntool: {tries: 2}\n",
                           "s.yaml");
    FAIL();
  } catch (const troupe::ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("only settings that workflow sft uses"));
  }
}

TEST_F(UserSections, AreExplained) {
  const auto text = troupe::explain_settings("tool");
  EXPECT_THAT(text, HasSubstr("# A tool. (workflow tooled)"));
  EXPECT_THAT(text, HasSubstr("  tries: 3\n"));
  EXPECT_THAT(troupe::explain_settings("tool.path"),
              HasSubstr("Where it is.\n"));
}

std::string section_complaint(const troupe::Section<Tool>& section) {
  try {
    troupe::add_user_section(section.parts());
  } catch (const troupe::ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_F(UserSections, DuplicateNamesAreBothReported) {
  EXPECT_EQ(
    section_complaint(
      troupe::Section<Tool>("tool").field("speed", &Tool::mode, "How fast")),
    "two settings sections are named tool: one with path, tries, share, "
    "mode, "
    "one with speed; try another name for one");
  EXPECT_EQ(section_complaint(troupe::Section<Tool>("other")
                                .field("path", &Tool::path, "Where it is")
                                .field("path", &Tool::mode, "How it works")),
            "two settings are named other.path: one 'Where it is.', one 'How "
            "it works.'; try another name for one");
}

TEST_F(UserSections, ATakenNameIsRefused) {
  EXPECT_THROW(
    troupe::add_user_section(troupe::Section<Tool>("rollout").parts()),
    troupe::ConfigError);
}

} // namespace
