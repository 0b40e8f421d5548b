#include "runtime/planning/profile_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace troupe::runtime {
namespace {

std::vector<std::int32_t> ids_of(const net::Rows& rows, const char* key,
                                 std::size_t row) {
  const auto& column = rows.at(key);
  const auto offsets = column.offsets();
  const auto ids = column.as<std::int32_t>();
  return {ids.begin() + static_cast<std::ptrdiff_t>(offsets[row]),
          ids.begin() + static_cast<std::ptrdiff_t>(offsets[row + 1])};
}

TEST(ProfileRows, SamplesOfAPromptShareItAndNothingElse) {
  const ProfileRows maker({.prompt = 6, .response = 4, .samples_a_prompt = 2},
                          1000);
  const auto rows = maker.sequences(4, /*pairs=*/false);
  const auto first = ids_of(rows, "sequence_ids", 0);
  const auto second = ids_of(rows, "sequence_ids", 1);
  const auto third = ids_of(rows, "sequence_ids", 2);
  EXPECT_EQ(first.size(), 10u);
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + 6, second.begin()));
  EXPECT_FALSE(std::equal(first.begin() + 6, first.end(), second.begin() + 6));
  EXPECT_FALSE(std::equal(first.begin(), first.begin() + 6, third.begin()));
  const auto prompts = maker.prompts(4);
  EXPECT_EQ(ids_of(prompts, "prompt_ids", 0), ids_of(prompts, "prompt_ids", 1));
}

TEST(ProfileRows, TheLossCountsOnlyResponses) {
  const ProfileRows maker({.prompt = 3, .response = 2}, 100);
  const auto rows = maker.sequences(2, /*pairs=*/false);
  const auto mask = rows.at("loss_mask").as<std::uint8_t>();
  EXPECT_EQ((std::vector<std::uint8_t>{mask.begin(), mask.end()}),
            (std::vector<std::uint8_t>{0, 0, 0, 1, 1, 0, 0, 0, 1, 1}));
}

TEST(ProfileRows, PairsHaveTwoTexts) {
  const ProfileRows maker({.response = 5}, 100);
  auto rows = maker.sequences(3, /*pairs=*/true);
  maker.add_floats(rows, "chosen_ref_logprobs");
  EXPECT_NE(ids_of(rows, "chosen_ids", 0), ids_of(rows, "rejected_ids", 0));
  EXPECT_EQ(rows.at("chosen_ref_logprobs").num_elements(), 15u);
}

TEST(ProfileRows, TokensAreInTheVocabulary) {
  for (const std::int64_t vocab : {1, 3, 4, 50}) {
    const ProfileRows maker({.prompt = 4, .response = 40}, vocab);
    for (const auto id :
         ids_of(maker.sequences(1, /*pairs=*/false), "sequence_ids", 0)) {
      EXPECT_GE(id, 0);
      EXPECT_LT(id, vocab);
    }
  }
}

} // namespace
} // namespace troupe::runtime
