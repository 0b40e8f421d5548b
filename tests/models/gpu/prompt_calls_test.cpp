// Which prompts of a pass one call of fused attention takes, and where the
// cache has their keys.
#include "models/gpu/prompt_calls.hpp"

#include <gmock/gmock.h>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Slots 0 to 3 have pages 0 to 2, 3 and 4, 5 and 6, 7, of 4 tokens each.
CachePages paged_slots() {
  CachePages pages({.slots = 4, .tokens = 12, .page_tokens = 4, .pages = 9});
  for (const std::int64_t tokens : {12, 8, 8, 4})
    pages.make_room(pages.take_slot(), 0, tokens);
  return pages;
}

constexpr std::int64_t many_keys = 100;

TEST(PromptCalls, NewPromptsReadTheKeysOfThePass) {
  const std::vector<DecodeGroup> groups{{0, 3, 0, 3}, {3, 2, 1, 2}};
  const auto calls = prompt_calls(groups, paged_slots(), many_keys);
  ASSERT_THAT(calls, SizeIs(1));
  EXPECT_FALSE(calls[0].copies_keys());
  EXPECT_TRUE(calls[0].is_range());
  EXPECT_THAT(calls[0].rows, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(calls[0].query_starts, ElementsAre(0, 3, 5));
  EXPECT_EQ(calls[0].key_starts, calls[0].query_starts);
  EXPECT_EQ(calls[0].most_queries, 3);
  EXPECT_EQ(calls[0].most_keys, 3);
}

TEST(PromptCalls, OthersReadWhatIsCachedOfThemAndTheirOwnKeys) {
  const std::vector<DecodeGroup> groups{
    {0, 2, 0, 6}, {2, 1, 3, 4}, {3, 3, 2, 3}, {6, 3, 1, 5}};
  const auto calls = prompt_calls(groups, paged_slots(), many_keys);
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_TRUE(calls[0].copies_keys());
  EXPECT_FALSE(calls[0].is_range());
  EXPECT_THAT(calls[0].rows, ElementsAre(0, 1, 6, 7, 8));
  EXPECT_THAT(calls[0].query_starts, ElementsAre(0, 2, 5));
  EXPECT_THAT(calls[0].key_starts, ElementsAre(0, 6, 11));
  EXPECT_THAT(calls[0].cached.pages,
              ElementsAre(0, 0, 0, 0, 1, 1, 3, 3, 3, 3, 4));
  EXPECT_THAT(calls[0].cached.tokens,
              ElementsAre(0, 1, 2, 3, 0, 1, 0, 1, 2, 3, 0));
  EXPECT_EQ(calls[0].most_queries, 3);
  EXPECT_EQ(calls[0].most_keys, 6);
  EXPECT_FALSE(calls[1].copies_keys());
  EXPECT_THAT(calls[1].rows, ElementsAre(3, 4, 5));
}

TEST(PromptCalls, CopyNoMoreKeysThanAllowedButThoseOfOneSequence) {
  const std::vector<DecodeGroup> groups{
    {0, 2, 0, 12}, {2, 2, 1, 5}, {4, 2, 2, 5}, {6, 2, 3, 4}};
  const auto calls = prompt_calls(groups, paged_slots(), 10);
  ASSERT_THAT(calls, SizeIs(3));
  EXPECT_THAT(calls[0].rows, ElementsAre(0, 1)) << "longer than allowed";
  EXPECT_THAT(calls[1].rows, ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(calls[1].keys(), 10);
  EXPECT_THAT(calls[2].rows, ElementsAre(6, 7));
}

TEST(PromptCalls, SingleTokensAreNone) {
  const std::vector<DecodeGroup> groups{{0, 1, 0, 12}, {1, 1, 1, 1}};
  EXPECT_THAT(prompt_calls(groups, paged_slots(), many_keys), IsEmpty());
}

} // namespace
} // namespace troupe::models
