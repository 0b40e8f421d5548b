// Which passes share a captured graph, and how they are padded.
#include "models/kernels/kv_cache.hpp"
#include "models/transformer/decode_pass.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace troupe::models {
namespace {

KvCache cache_of(std::int64_t num_slots, std::int64_t tokens) {
  ModelShape shape;
  shape.num_layers = 1;
  shape.num_kv_heads = 1;
  shape.head_dim = 4;
  KvCache cache(shape);
  cache.reset(num_slots, tokens);
  return cache;
}

/// One token per slot, slots from the last one down.
std::vector<DecodeToken> step(std::int32_t tokens, std::int32_t num_slots,
                              std::int32_t position) {
  std::vector<DecodeToken> all;
  for (std::int32_t i = 0; i < tokens; ++i)
    all.push_back({.id = 1, .slot = num_slots - 1 - i, .position = position});
  return all;
}

TEST(DecodePass, TokensOfASlotAreAGroupWithItsKeyRange) {
  DecodePass pass;
  pass.begin(
    std::vector<DecodeToken>{{1, 4, 9}, {2, 0, 3}, {3, 0, 4}, {4, 2, 0}});
  EXPECT_FALSE(pass.has_one_token_per_slot());
  ASSERT_EQ(pass.groups().size(), 3u);
  const DecodeGroup& middle = pass.groups()[1];
  EXPECT_EQ(middle.first, 1u);
  EXPECT_EQ(middle.tokens, 2u);
  EXPECT_EQ(middle.slot, 0);
  EXPECT_EQ(middle.keys, 5);
}

TEST(DecodePass, TokensAndKeysAreRoundedUpToPowersOfTwo) {
  const KvCache cache = cache_of(11, 150); // in 160 places
  DecodePass pass;
  const auto shape = [&](std::int32_t tokens, std::int32_t position) {
    pass.begin(step(tokens, 11, position));
    return pass.round_up(cache);
  };
  EXPECT_EQ(shape(1, 0), (PassShape{1, 16}));
  EXPECT_EQ(shape(3, 15), (PassShape{4, 16}));
  EXPECT_EQ(shape(5, 16), (PassShape{8, 32}));
  EXPECT_EQ(shape(8, 64), (PassShape{8, 128}));
  EXPECT_EQ(shape(9, 127), (PassShape{11, 128})) << "there are 11 slots";
  EXPECT_EQ(shape(11, 128), (PassShape{11, 160})) << "and 160 places";
}

TEST(DecodePass, IsPaddedWithUnusedSlots) {
  const KvCache cache = cache_of(7, 40);
  DecodePass pass;
  pass.begin(std::vector<DecodeToken>{{1, 0, 9}, {2, 2, 3}, {3, 6, 5}});
  EXPECT_EQ(pass.round_up(cache), (PassShape{4, 16}));
  EXPECT_TRUE(pass.has_one_token_per_slot());
  ASSERT_EQ(pass.tokens().size(), 4u);
  EXPECT_EQ(pass.tokens()[2].slot, 6) << "the others stay where they were";
  EXPECT_EQ(pass.tokens()[3].slot, 1);
  EXPECT_EQ(pass.tokens()[3].position, 39);
  for (const DecodeGroup& group : pass.groups())
    EXPECT_EQ(group.keys, 16);
}

TEST(RecordedPasses, TheLeastRecentlyUsedPassIsEvicted) {
  class Silent final : public GraphCapture {
    void run() override {}
  };
  RecordedPasses known(2);
  EXPECT_EQ(known.find({1, 16}), nullptr);
  known.add({1, 16}, std::make_unique<Silent>());
  known.add({2, 16}, std::make_unique<Silent>());
  GraphCapture* first = known.find({1, 16});
  ASSERT_NE(first, nullptr);
  known.add({2, 32}, std::make_unique<Silent>());
  EXPECT_EQ(known.find({1, 16}), first);
  EXPECT_EQ(known.find({2, 16}), nullptr);
  EXPECT_NE(known.find({2, 32}), nullptr);
  // what is drawn is an argument of the captured kernels
  known.add({2, 32, DrawFilters{.top_k = 5}}, std::make_unique<Silent>());
  EXPECT_NE(known.find({2, 32, DrawFilters{.top_k = 5}}), nullptr);
  EXPECT_EQ(known.find({2, 32, DrawFilters{.top_k = 6}}), nullptr);
  known.clear();
  EXPECT_EQ(known.find({1, 16}), nullptr);
}

} // namespace
} // namespace troupe::models
