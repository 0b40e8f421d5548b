// Rules on problems with solutions in the manner of GSM8K (for the second
// opinion, GSM8K and solutions of models to it), and on what people write in
// between.
#include "config/settings/settings.hpp"
#include "models/rewards/reward_rules.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/golden.hpp"
#include "tests/support/models/score_all.hpp"
#include <nlohmann/json.hpp>

#include <fstream>

namespace troupe::models {
namespace {

std::vector<nlohmann::json> rows_of(const std::string& kind) {
  std::ifstream file(support::golden_rows(kind));
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(file, line);)
    rows.push_back(nlohmann::json::parse(line));
  return rows;
}

RewardScore score_of(const std::string& rule, const RewardItem& item) {
  Settings settings;
  settings.reward.kind = "rule";
  settings.reward.rule = rule;
  return score_all(*make_rule_rewarder(settings), {item}).scores.front();
}

double worth(const std::string& rule, const std::string& response,
             const std::string& truth) {
  const auto score
    = score_of(rule, {.response = response, .ground_truth = truth});
  EXPECT_EQ(score.error, "") << response;
  return score.parts.at(0).second;
}

TEST(RewardRules, Gsm8kScoresTheRightAnswerOneAndAnotherRowsZero) {
  TROUPE_NEEDS_GOLDEN();
  const auto rows = rows_of("problems");
  ASSERT_GE(rows.size(), 400U);
  Settings settings;
  settings.reward.rule = "gsm8k";
  const auto rewarder = make_rule_rewarder(settings);
  std::vector<RewardItem> right;
  std::vector<RewardItem> wrong;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string truth = rows[i].at("answer");
    right.push_back({.response = truth, .ground_truth = truth});
    const auto bare = truth.substr(truth.rfind("#### ") + 5);
    wrong.push_back({.response = "so it is " + bare, .ground_truth = truth});
  }
  for (const auto& score : score_all(*rewarder, right).scores)
    ASSERT_EQ(score.parts.at(0).second, 1);
  for (const auto& score : score_all(*rewarder, wrong).scores)
    ASSERT_EQ(score.parts.at(0).second, 0); // without "####" it is no answer
}

TEST(RewardRules, NumberSeparatesRightSolutionsFromWrongOnes) {
  TROUPE_NEEDS_GOLDEN();
  const auto pairs = rows_of("pairs");
  ASSERT_GE(pairs.size(), 200U);
  std::map<std::string, std::string> truths;
  for (const auto& row : rows_of("problems"))
    truths[row.at("question")] = row.at("answer");
  std::size_t known = 0;
  for (const auto& pair : pairs) {
    const auto truth = truths.find(pair.at("prompt").get<std::string>());
    if (truth == truths.end())
      continue;
    ++known;
    ASSERT_EQ(worth("number", pair.at("chosen"), truth->second), 1) << pair;
    ASSERT_EQ(worth("number", pair.at("rejected"), truth->second), 0) << pair;
  }
  EXPECT_GT(known, pairs.size() * 6 / 7);
}

TEST(RewardRules, Gsm8kReadsNumbersAsPeopleWriteThem) {
  for (const char* reply : {"#### 1080", "x #### 1,080", "####$1,080.",
                            "#### 1080.0 dollars", "#### 12 wait\n#### 1080"})
    EXPECT_EQ(worth("gsm8k", reply, "1080"), 1) << reply;
  for (const char* reply : {"1080", "#### ", "#### 108", "#### -1080",
                            "#### 1080\n#### 12", "#### one 1080", ""})
    EXPECT_EQ(worth("gsm8k", reply, "... #### 1,080"), 0) << reply;
  EXPECT_EQ(worth("gsm8k", "#### -3.50", "-3.5"), 1);
}

TEST(RewardRules, BoxedComparesNumbersAndFormulas) {
  EXPECT_EQ(worth("boxed", "so \\boxed{12.0}.", "12"), 1);
  EXPECT_EQ(worth("boxed", "\\boxed{\\dfrac{1}{2}}", "\\frac{1}{2}"), 1);
  EXPECT_EQ(worth("boxed", "\\boxed{\\left( 1, 2 \\right)}", "(1,2)"), 1);
  EXPECT_EQ(worth("boxed", "\\boxed{3} no, \\boxed{4}", "see \\boxed{4}"), 1);
  EXPECT_EQ(worth("boxed", "12", "12"), 0);
  EXPECT_EQ(worth("boxed", "\\boxed{12", "12"), 0);
}

TEST(RewardRules, TextsPatternsAndLengthsScore) {
  EXPECT_EQ(worth("exact", " yes\n", "yes"), 1);
  EXPECT_EQ(worth("exact", "yes!", "yes"), 0);
  EXPECT_EQ(worth("regex:\\bkind\\b", "a kind host", ""), 1);
  EXPECT_EQ(worth("regex:\\bkind\\b", "kindness", ""), 0);
  EXPECT_EQ(worth("regex", "it is 4 or 5", "[45]"), 1); // the truth's pattern
  EXPECT_EQ(worth("regex:^(?!.*sorry)", "I can", ""), 1) << "an empty match";
  EXPECT_EQ(worth("regex:^(?!.*sorry)", "I am sorry", ""), 0);
  EXPECT_EQ(worth("regex:^$", "", ""), 1);
  EXPECT_EQ(worth("format", "<think>a\nb</think>\n<answer>4</answer>", ""), 1);
  EXPECT_EQ(worth("format", "<answer>4</answer>", ""), 0);
  EXPECT_EQ(worth("format:\\d+|none", "12", ""), 1);
  EXPECT_EQ(worth("format:\\d+|none", "12 apples", ""), 0);
  EXPECT_EQ(worth("format:\\d*", "", ""), 1);
  const auto length = [](std::uint32_t tokens) {
    return score_of("length:10", {.num_tokens = tokens}).parts.at(0).second;
  };
  EXPECT_EQ(length(10), 1);
  EXPECT_EQ(length(15), 0.5);
  EXPECT_EQ(length(30), 0);
}

TEST(RewardRules, AutoChoosesByDataSourceThenByGroundTruth) {
  const auto chosen = [](const char* source, const char* truth) {
    return chosen_rule({}, {.ground_truth = truth, .data_source = source}).name;
  };
  EXPECT_EQ(chosen("openai/gsm8k", "72"), "gsm8k");
  EXPECT_EQ(chosen("lighteval/MATH", "72"), "boxed");
  EXPECT_EQ(chosen("math_dapo", "34"), "boxed");
  EXPECT_EQ(chosen("", "so #### 72"), "gsm8k");
  EXPECT_EQ(chosen("mine", "1,072"), "number");
  EXPECT_EQ(chosen("mine", "Paris"), "exact");
  const auto score
    = score_of("auto", {.response = "#### 7", .ground_truth = "#### 7"});
  EXPECT_EQ(score.parts.at(0).first, "gsm8k"); // its metric's name
}

TEST(RewardRules, AMissingGroundTruthIsAnErrorThatNamesDataFields) {
  for (const char* rule :
       {"auto", "exact", "gsm8k", "number", "boxed", "regex"})
    EXPECT_NE(score_of(rule, {.response = "7"}).error.find("data.fields"),
              std::string::npos)
      << rule;
  EXPECT_NE(score_of("gsm8k", {.response = "7", .ground_truth = "many"}).error,
            "");
}

TEST(RewardRules, WeightedRulesKeepTheirNames) {
  Settings settings;
  settings.reward.weights = {{"gsm8k", 1}, {"format:.*####.*", 0.5}};
  const auto score = score_all(*make_rule_rewarder(settings),
                               {{.response = "#### 8", .ground_truth = "7"}})
                       .scores.front();
  using Parts = decltype(score.parts);
  EXPECT_EQ(score.parts, (Parts{{"format:.*####.*", 1}, {"gsm8k", 0}}));
}

TEST(RewardRules, ABrokenPatternIsRefusedBeforeTheRun) {
  Settings settings;
  settings.reward.rule = "regex:(";
  EXPECT_THROW(make_rule_rewarder(settings), ConfigError);
}

} // namespace
} // namespace troupe::models
