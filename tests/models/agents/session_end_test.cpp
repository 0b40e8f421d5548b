// How a session went, by the output and the end of its program.
#include "models/agents/session_end.hpp"

#include <gmock/gmock.h>

namespace troupe::models {
namespace {

using ::testing::HasSubstr;

TEST(SessionEnd, TheRewardIsTheLastOneThatWasWritten) {
  EXPECT_EQ(reward_of_output("{\"reward\": 1}\n{\"reward\": 0.5}\nbye\n"), 0.5);
  EXPECT_EQ(reward_of_output("{\"reward\": -2, \"turns\": 3}"), -2);
}

TEST(SessionEnd, WhatIsNoNumberIsNoReward) {
  for (const char* text :
       {"", "1.0\n", "{\"reward\": \"high\"}", "{\"reward\"",
        "[{\"reward\": 1}]", "{\"score\": 1}", "{\"reward\": 1e999}"})
    EXPECT_EQ(reward_of_output(text), std::nullopt) << text;
}

TEST(SessionEnd, AProgramThatEndsWellHasItsNumber) {
  const auto end = session_end({.output = "{\"reward\": 1}\n"},
                               /*needs_reward=*/true);
  EXPECT_EQ(end.reward, 1);
  EXPECT_EQ(end.failure, "");
}

TEST(SessionEnd, APostedNumberCountsUnlessOneWasWritten) {
  EXPECT_EQ(session_end({.posted = 3}, /*needs_reward=*/true).reward, 3);
  EXPECT_EQ(session_end({.output = "{\"reward\": 1}", .posted = 3},
                        /*needs_reward=*/true)
              .reward,
            1);
}

TEST(SessionEnd, AFailureSaysHowAndTheLastWords) {
  const auto end = session_end({.how = "exit code 1",
                                .last_word = "KeyError: 'a'",
                                .output = "{\"reward\": 1}"},
                               /*needs_reward=*/false);
  EXPECT_EQ(end.failure, "the program ended with exit code 1: KeyError: 'a'");
}

TEST(SessionEnd, ASilentProgramFailsWhereItsNumberIsNeeded) {
  EXPECT_THAT(session_end({}, /*needs_reward=*/true).failure,
              HasSubstr("without a line {\"reward\": NUMBER}"));
  EXPECT_EQ(session_end({}, /*needs_reward=*/false).failure, "");
}

} // namespace
} // namespace troupe::models
