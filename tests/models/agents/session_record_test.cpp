// The record of a session: branches, what continues what.
#include "config/base/error.hpp"
#include "models/agents/session_record.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace troupe::models {
namespace {

using nlohmann::ordered_json;
using ::testing::ElementsAre;

ordered_json messages_of(const std::vector<std::string>& texts) {
  ordered_json messages = ordered_json::array();
  for (const auto& text : texts)
    messages.push_back(
      {{"role", messages.size() % 2 == 0 ? "user" : "assistant"},
       {"content", text}});
  return messages;
}

SaidAs in_chat(const std::vector<std::string>& texts) {
  return {.messages = messages_of(texts), .tools = {}, .text = ""};
}

TEST(SessionRecord, ABranchHasTheTokensThatWereSaid) {
  SessionRecord record;
  const auto prompt = record.give({}, {1, 2});
  const auto answer
    = record.say(prompt, {3, 4}, {-1, -2}, /*truncated=*/false, {});
  const auto tool = record.give(answer, {5});
  record.say(tool, {6}, {-3}, /*truncated=*/true, {});
  const auto branch = *record.last_branch();
  EXPECT_THAT(branch.ids, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(branch.loss_mask, ElementsAre(0, 0, 1, 1, 0, 1));
  EXPECT_THAT(branch.logprobs, ElementsAre(0, 0, -1, -2, 0, -3));
  EXPECT_TRUE(branch.truncated);
}

TEST(SessionRecord, ASessionInWhichNothingWasSaidHasNoBranch) {
  SessionRecord record;
  record.give({}, {1});
  EXPECT_FALSE(record.last_branch().has_value());
  EXPECT_EQ(record.num_answers(), 0U);
  EXPECT_EQ(record.answers_beside_last_branch(), 0U);
}

TEST(SessionRecord, WhatAnotherModelSaidIsGivenToTheFirst) {
  SessionRecord record;
  const SaidAs by_other{.by = SaidBy::other};
  const auto prompt = record.give({}, {1, 2});
  const auto own = record.say(prompt, {3}, {-1}, /*truncated=*/false, {});
  const auto others
    = record.say(record.give(own, {}), {4, 5}, {-2, -3}, false, by_other);
  record.say(record.give(others, {6}), {7}, {-4}, false, {});
  // what follows the last answer of the first is not trained on
  record.say(record.give({}, {9}), {8}, {-5}, false, by_other);
  const auto branch = *record.last_branch();
  EXPECT_THAT(branch.ids, ElementsAre(1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(branch.loss_mask, ElementsAre(0, 0, 1, 0, 0, 0, 1));
  EXPECT_THAT(branch.logprobs, ElementsAre(0, 0, -1, 0, 0, 0, -4));
  EXPECT_EQ(record.num_answers(), 2U);
  EXPECT_EQ(record.answers_beside_last_branch(), 0U);
}

TEST(SessionRecord, BranchesShareWhatCameBefore) {
  SessionRecord record;
  const auto prompt = record.give({}, {1, 2});
  const auto first = record.say(prompt, {3}, {-1}, /*truncated=*/false, {});
  EXPECT_EQ(record.answers_to(prompt), 1U);
  EXPECT_EQ(record.give({}, {1, 2}), prompt);
  const auto second = record.say(prompt, {4}, {-1}, /*truncated=*/false, {});
  EXPECT_EQ(record.answers_to(prompt), 2U);
  EXPECT_THAT(record.ends(), ElementsAre(first, second));
  EXPECT_THAT(record.ids_until(first), ElementsAre(1, 2, 3));
  EXPECT_THAT(record.ids_until(second), ElementsAre(1, 2, 4));
  const auto more = record.give(first, {5});
  const auto third = record.say(more, {6}, {-1}, /*truncated=*/false, {});
  EXPECT_THAT(record.ends(), ElementsAre(second, third));
  EXPECT_THAT(record.last_branch()->ids, ElementsAre(1, 2, 3, 5, 6));
  EXPECT_EQ(record.answers_beside_last_branch(), 1U);
}

TEST(SessionRecord, MessagesContinueTheLongestAnswerTheyBeginWith) {
  SessionRecord record;
  const auto first = record.say(record.give({}, {1}), {2}, {-1},
                                /*truncated=*/false, in_chat({"hi", "yo"}));
  const auto second
    = record.say(record.give(first, {3}), {4}, {-1}, /*truncated=*/false,
                 in_chat({"hi", "yo", "so", "no"}));
  EXPECT_EQ(record.continued_by(messages_of({"hi"}), nullptr), std::nullopt);
  EXPECT_EQ(record.continued_by(messages_of({"hi", "yo"}), nullptr),
            std::nullopt);
  EXPECT_EQ(record.continued_by(messages_of({"hi", "yo", "x"}), nullptr),
            first);
  EXPECT_EQ(
    record.continued_by(messages_of({"hi", "yo", "so", "no", "x"}), nullptr),
    second);
  EXPECT_EQ(record.continued_by(messages_of({"hi", "you", "x"}), nullptr),
            std::nullopt);
  EXPECT_EQ(record.continued_by(messages_of({"hi", "yo", "x"}),
                                ordered_json::array({"tool"})),
            std::nullopt);
}

TEST(SessionRecord, OfEqualAnswersTheLastIsContinued) {
  SessionRecord record;
  const auto prompt = record.give({}, {1});
  record.say(prompt, {2}, {-1}, /*truncated=*/false, in_chat({"hi", "yo"}));
  const auto last
    = record.say(prompt, {3}, {-1}, /*truncated=*/false, in_chat({"hi", "yo"}));
  EXPECT_EQ(record.continued_by(messages_of({"hi", "yo", "x"}), nullptr), last);
}

TEST(SessionRecord, TextsAndTokensContinueToo) {
  SessionRecord record;
  const auto answer
    = record.say(record.give({}, {1, 2}), {3}, {-1}, /*truncated=*/false,
                 {.messages = {}, .tools = {}, .text = "ab"});
  EXPECT_EQ(record.continued_by("abc"), answer);
  EXPECT_EQ(record.continued_by("xab"), std::nullopt);
  const std::vector<std::int32_t> longer{1, 2, 3, 9};
  const std::vector<std::int32_t> other{1, 2, 9};
  EXPECT_EQ(record.continued_by(longer), answer);
  EXPECT_EQ(record.continued_by(other), std::nullopt);
}

TEST(SessionRecord, WithoutRoomTheBranchIsTruncated) {
  SessionRecord record;
  record.say(record.give({}, {1}), {2}, {-1}, /*truncated=*/false, {});
  EXPECT_FALSE(record.last_branch()->truncated);
  record.had_no_room();
  EXPECT_TRUE(record.last_branch()->truncated);
}

TEST(SessionRecord, OnlyAnswersAreGoneOnAfter) {
  SessionRecord record;
  const auto prompt = record.give({}, {1});
  EXPECT_THROW(record.give(prompt, {2}), InvariantError);
  EXPECT_THROW(record.say(prompt, {2}, {}, /*truncated=*/false, {}),
               InvariantError);
}

} // namespace
} // namespace troupe::models
