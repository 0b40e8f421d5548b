// A sample as a conversation: which tokens are the model's, and which fit.
#include "models/generate/turn_tokens.hpp"

#include "tests/support/models/dataset_support.hpp"
#include <gmock/gmock.h>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;
using testing::letters;

template <class T>
std::vector<int> ints(std::span<const T> values) {
  return {values.begin(), values.end()};
}

Sample begun(std::int64_t most_tokens) {
  const auto tokenizer = letters();
  Sample sample(3);
  begin_conversation(sample, tokenizer.encode("ab", /*special=*/false),
                     most_tokens);
  return sample;
}

TEST(TurnTokens, MasksAllButTheModelsTokens) {
  const auto tokenizer = letters();
  Sample sample = begun(20);
  take_turn(sample,
            {.ids = tokenizer.encode("cd", false), .logprobs = {-1.F, -2.F}},
            tokenizer);
  sample.append("e").append("f");
  take_appended(sample, tokenizer);
  take_turn(sample, {.ids = tokenizer.encode("g", false), .logprobs = {-3.F}},
            tokenizer);
  EXPECT_EQ(
    ints(sample[keys::sequence_ids]),
    ints(std::span<const std::int32_t>(tokenizer.encode("abcdefg", false))));
  EXPECT_THAT(ints(sample[keys::loss_mask]), ElementsAre(0, 0, 1, 1, 0, 0, 1));
  EXPECT_THAT(ints(sample[keys::logprobs]),
              ElementsAre(0, 0, -1, -2, 0, 0, -3));
  EXPECT_EQ(sample[keys::turn], "g");
  EXPECT_EQ(sample[keys::response], "cdg");
  EXPECT_EQ(sample[keys::truncated], 0);
}

TEST(TurnTokens, WhatAnotherModelSaysIsReadAndNotTrainedOn) {
  const auto tokenizer = letters();
  Sample sample = begun(20);
  EXPECT_EQ(next_turn(sample, 4, /*speaker=*/1).speaker, 1U);
  take_turn(sample,
            {.ids = tokenizer.encode("cd", false), .logprobs = {-1.F, -2.F}},
            tokenizer, /*speaker=*/1);
  EXPECT_EQ(sample[keys::turn], "cd");
  EXPECT_EQ(sample[keys::response], "");
  take_turn(sample, {.ids = tokenizer.encode("e", false), .logprobs = {-3.F}},
            tokenizer);
  EXPECT_THAT(ints(sample[keys::loss_mask]), ElementsAre(0, 0, 0, 0, 1));
  EXPECT_THAT(ints(sample[keys::logprobs]), ElementsAre(0, 0, 0, 0, -3));
  EXPECT_EQ(sample[keys::response], "e");
}

TEST(TurnTokens, TokensThatDoNotFitAreDroppedAndReported) {
  const auto tokenizer = letters();
  Sample sample = begun(4);
  sample.append("cde");
  take_appended(sample, tokenizer);
  EXPECT_EQ(sample[keys::sequence_ids].size(), 4u);
  EXPECT_EQ(sample[keys::truncated], 1);
  sample.append("f");
  take_appended(sample, tokenizer);
  EXPECT_EQ(sample[keys::sequence_ids].size(), 4u);
}

TEST(TurnTokens, ATurnContinuesAllEarlierTokens) {
  const auto tokenizer = letters();
  Sample sample = begun(20);
  sample.append("c");
  take_appended(sample, tokenizer);
  take_appended(sample, tokenizer); // no token occurs twice
  const Turn turn = next_turn(sample, 5);
  EXPECT_EQ(turn.sample, SampleId{3});
  EXPECT_EQ(turn.ids, tokenizer.encode("abc", false));
  EXPECT_EQ(turn.max_new_tokens, 5);
}

} // namespace
} // namespace troupe::models
