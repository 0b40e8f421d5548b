// From scores of rules and programs to the key `scores`: weights, errors, and
// the lines of the programs.
#include "config/settings/settings.hpp"
#include "models/rewards/line_rewarder.hpp"
#include "models/rewards/reward_protocol.hpp"
#include "models/rewards/reward_rows.hpp"

#include "tests/support/models/score_all.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace troupe::models {
namespace {

using ::testing::HasSubstr;

RewardItem response(const std::string& text) {
  return {.id = "step 1 sample 0",
          .prompt = "p",
          .response = text,
          .ground_truth = "t",
          .data_source = "s",
          .extra_info = R"({"k": 1})",
          .num_tokens = 1,
          .place = {"rows.jsonl", 7}};
}

/// Three scores: 2, an error, and one that arrived too late.
RewardReplies three_scores() {
  return {.scores = {{.parts = {{"score", 2}, {"style", 4}}},
                     {.error = "it crashed"},
                     {.error = "no answer in time", .late = true}},
          .unmatched = {}};
}

FunctionResult rows_of(RewardReplies replies, const Settings& settings) {
  std::vector<SampleId> samples;
  std::vector<RewardItem> items;
  for (std::size_t i = 0; i < replies.scores.size(); ++i) {
    samples.emplace_back(i);
    items.push_back(response("a"));
  }
  return reward_rows(samples, items, std::move(replies), settings);
}

std::vector<float> scores_in(const FunctionResult& result) {
  const auto floats = result.rows.at("scores").as<float>();
  return {floats.begin(), floats.end()};
}

TEST(RewardRows, ErrorsAreZeroOrSkippedAndCounted) {
  Settings settings;
  settings.reward.on_error = "zero";
  const auto zero = rows_of(three_scores(), settings);
  EXPECT_EQ(scores_in(zero), (std::vector<float>{2, 0, 0}));
  EXPECT_EQ(zero.sums.value("reward/errors"), 1);
  EXPECT_EQ(zero.sums.value("reward/timeouts"), 1);
  EXPECT_EQ(zero.sums.value("reward/score/mean"), 2); // of those there are
  EXPECT_EQ(zero.sums.value("reward/style/mean"), 4);
  settings.reward.on_error = "skip";
  const auto skipped = scores_in(rows_of(three_scores(), settings));
  EXPECT_EQ(skipped[0], 2);
  EXPECT_TRUE(std::isnan(skipped[1]) && std::isnan(skipped[2]));
}

TEST(RewardRows, TheFirstErrorEndsTheRunWithItsRow) {
  const Settings settings;
  try {
    rows_of(three_scores(), settings);
    FAIL() << "nothing was thrown";
  } catch (const FailureError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rows.jsonl:7"));
    EXPECT_THAT(error.what(), HasSubstr("step 1 sample 0"));
    EXPECT_THAT(error.what(), HasSubstr("it crashed"));
  }
}

TEST(RewardRows, WeightedPartsAddUpAndMissingOnesAreErrors) {
  Settings settings;
  settings.reward.on_error = "zero";
  settings.reward.weights = {{"score", 1}, {"style", -0.5}};
  EXPECT_EQ(scores_in(rows_of(three_scores(), settings))[0], 0);
  settings.reward.weights = {{"humour", 1}};
  const auto missing = rows_of(three_scores(), settings);
  EXPECT_EQ(missing.sums.value("reward/errors"), 2);
}

TEST(RewardRows, AnUnmatchedReplyIsAnError) {
  Settings settings;
  settings.reward.on_error = "zero";
  RewardReplies replies{.scores = {}, .unmatched = {"id 99"}};
  EXPECT_EQ(rows_of(replies, settings).sums.value("reward/errors"), 1);
  settings.reward.on_error = "fail";
  EXPECT_THROW(rows_of(replies, settings), FailureError);
}

// -- lines -------------------------------------------------------------------

TEST(RewardProtocol, RequestsHaveTheDocumentedFields) {
  const auto line
    = nlohmann::json::parse(request_line(request_content(response("a")), 12));
  EXPECT_EQ(line, nlohmann::json::parse(
                    R"({"id": 12, "prompt": "p", "response": "a",
                        "ground_truth": "t", "data_source": "s",
                        "extra_info": {"k": 1}})"));
}

TEST(RewardProtocol, RepliesAreNumbersOrErrors) {
  using Parts = decltype(RewardScore::parts);
  const auto read
    = read_reply(R"({"id": 1, "score": 0.5, "extra": {"style": 2}})");
  EXPECT_EQ(read.parts, (Parts{{"score", 0.5}, {"style", 2}}));
  EXPECT_EQ(read.error, "");
  EXPECT_EQ(read_reply(R"({"id": 1, "score": true})").parts.at(0).second, 1);
  EXPECT_THAT(read_reply(R"({"id": 1, "score": "good"})").error,
              HasSubstr("expected score to be a number, got \"good\""));
  EXPECT_THAT(read_reply(R"({"id": 1})").error, HasSubstr("a score"));
  EXPECT_THAT(read_reply("12").error, HasSubstr("a JSON object"));
  EXPECT_THAT(read_reply(R"({"id": 1, "error": "KeyError: 'x'"})").error,
              HasSubstr("KeyError"));
  EXPECT_EQ(read_reply(R"({"id": 1, "score": 2, "error": null})").error, "");
  EXPECT_THAT(read_reply(R"({"id": 1, "score": 1e300})").error,
              HasSubstr("expected score to be a number, got 1e+300"));
  EXPECT_EQ(reply_id(R"({"id": 7})"), 7U);
  EXPECT_EQ(reply_id(R"({"id": "seven"})"), std::nullopt);
  EXPECT_EQ(reply_id("hello"), std::nullopt);
}

TEST(RewardProtocol, NaNAndInfinityAreErrorsOfTheirRow) {
  for (const char* word : {"NaN", "Infinity", "-Infinity"}) {
    const auto reply = std::string(R"({"note": "a \"NaN\\", "score": )") + word
                       + R"(, "id": 7})";
    EXPECT_EQ(reply_id(reply), 7U) << reply;
    EXPECT_EQ(read_reply(reply).error,
              std::string("expected score to be a number, got \"") + word
                + "\"");
  }
  EXPECT_EQ(reply_id("NaN"), std::nullopt);
}

/// Replies to the lines that are there, the last one first, with the length of
/// their responses, until there are no more.
struct CountingProgram {
  int asked = 0;
  void operator()(const net::LineSource& source,
                  const net::LineHandler& handler, const std::atomic<bool>*) {
    for (auto lines = source.take(); !lines.empty(); lines = source.take())
      for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
        ++asked;
        const auto row = nlohmann::json::parse(*line);
        const nlohmann::json said
          = {{"id", row["id"]},
             {"score", row["response"].get<std::string>().size()}};
        const auto text = said.dump();
        handler.on_reply(*handler.line_of(text), text);
      }
  }
};

TEST(LineRewarder, RequestsEqualResponsesOnceAndCachesScores) {
  auto program = std::make_shared<CountingProgram>();
  LineRewarder rewarder(
    [program](const auto&... arguments) { (*program)(arguments...); });
  std::vector<double> scores;
  for (const auto& score :
       score_all(rewarder, {response("aa"), response("bbb"), response("aa")})
         .scores)
    scores.push_back(score.parts.at(0).second);
  EXPECT_EQ(scores, (std::vector<double>{2, 3, 2}));
  EXPECT_EQ(program->asked, 2);
  score_all(rewarder, {response("bbb"), response("c")});
  EXPECT_EQ(program->asked, 3);
}

TEST(LineRewarder, TheCacheIsBounded) {
  auto program = std::make_shared<CountingProgram>();
  LineRewarder rewarder(
    [program](const auto&... arguments) { (*program)(arguments...); });
  const std::size_t megabyte = std::size_t{1} << 20;
  for (std::size_t i = 0; i < 32; ++i)
    score_all(rewarder, {response(std::string(megabyte + i, 'x'))});
  EXPECT_EQ(program->asked, 32);
  score_all(rewarder, {response(std::string(megabyte + 31, 'x'))});
  EXPECT_EQ(program->asked, 32); // the last one is cached
  score_all(rewarder, {response(std::string(megabyte, 'x'))});
  EXPECT_EQ(program->asked, 33); // the first one is evicted
}

TEST(LineRewarder, RequestsLaterSamplesUnlessAlreadyRequested) {
  auto program = std::make_shared<CountingProgram>();
  LineRewarder rewarder(
    [program](const auto&... arguments) { (*program)(arguments...); });
  std::vector<std::vector<RewardItem>> comes
    = {{response("aa")}, {response("aa"), response("b")}, {response("b")}, {}};
  std::map<std::size_t, double> scores;
  RewardRound round;
  round.take = [&, next = comes.begin()]() mutable {
    return next == comes.end() ? std::vector<RewardItem>{} : *next++;
  };
  round.on_score = [&](std::size_t item, const RewardScore& score) {
    EXPECT_TRUE(scores.emplace(item, score.parts.at(0).second).second);
  };
  rewarder.score(round);
  EXPECT_EQ(scores,
            (std::map<std::size_t, double>{{0, 2}, {1, 2}, {2, 1}, {3, 1}}));
  EXPECT_EQ(program->asked, 2);
}

TEST(LineRewarder, RetriesErrorsOnlyInTheNextStep) {
  int asked = 0;
  LineRewarder rewarder(
    [&](const net::LineSource& source, const auto& handler, auto*) {
      const auto lines = source.take();
      asked += static_cast<int>(lines.size());
      for (std::size_t i = 0; i < lines.size(); ++i)
        handler.on_loss(i, net::LineLoss::late, "no answer in time");
      handler.on_unmatched("{\"id\": 99}");
    });
  for (int step = 1; step <= 2; ++step)
    for (int chunk = 1; chunk <= 2; ++chunk) {
      std::vector items(2, response("a"));
      for (auto& item : items)
        item.requester = "rewards of step " + std::to_string(step);
      const auto replies = score_all(rewarder, items);
      EXPECT_TRUE(replies.scores.at(1).late);
      EXPECT_EQ(replies.unmatched.size(), 1U);
      EXPECT_EQ(asked, step);
    }
}

} // namespace
} // namespace troupe::models
