// Which sequences are in a cache of pages: as many as their tokens fit, and the
// oldest ones if they grow beyond it.
#include "models/generate/admission.hpp"
#include "models/gpu/aten_backend.hpp"

#include <gmock/gmock.h>

namespace troupe::models::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Sequences in a cache of pages with 16 tokens each.
class AdmissionTest : public ::testing::Test {
protected:
  AdmissionTest() {
    cache_shape.num_layers = 1;
    cache_shape.num_kv_heads = 1;
    cache_shape.head_dim = 4;
    cache.emplace(cache_shape, backend);
    sequences.reserve(8);
  }
  void make_pages(std::int64_t pages) {
    cache->reset({.slots = 8, .tokens = 64, .page_tokens = 16, .pages = pages});
  }
  /// Adds a sequence that waits; of a group of its own unless told.
  Sequence& wait(std::int64_t tokens, std::int64_t limit = 64,
                 std::optional<std::size_t> group = std::nullopt) {
    Sequence& s = sequences.emplace_back();
    s.ids.resize(static_cast<std::size_t>(tokens));
    s.num_prompt = s.given = tokens;
    s.limits = {limit, limit};
    s.group = group.value_or(sequences.size() - 1);
    lane.waiting.push_back(&s);
    return s;
  }
  void admit() {
    lane.admit(*cache, [](const Sequence&) {});
  }
  /// Feeds all tokens and adds new ones.
  static void grow(Sequence& s, std::int64_t by) {
    s.fed = s.size();
    s.ids.resize(s.ids.size() + static_cast<std::size_t>(by));
  }
  std::span<const std::int32_t> pages_of(const Sequence& s) const {
    return cache->pages().pages(s.slot);
  }

  AtenBackend backend{at::kCPU, {.page_tokens = 16}};
  ModelShape cache_shape;
  std::optional<KvCache> cache;
  std::vector<Sequence> sequences;
  Admission lane;
};

TEST_F(AdmissionTest, ASequenceWaitsUntilAPageForNewTokensIsFreeToo) {
  make_pages(5);
  Sequence& first = wait(16);
  Sequence& second = wait(17, /*limit=*/20);
  Sequence& third = wait(10);
  admit(); // 2, 2 as its limit is on the second page, and 2
  EXPECT_THAT(lane.active, ElementsAre(&first, &second));
  EXPECT_THAT(lane.waiting, ElementsAre(&third));
  EXPECT_EQ(pages_of(first).size(), 1U);
  EXPECT_EQ(pages_of(second).size(), 2U);
  cache->free_slot(second.slot);
  lane.active.pop_back();
  admit();
  EXPECT_THAT(lane.active, ElementsAre(&first, &third));
}

TEST_F(AdmissionTest, TheYoungestGivesWayAndWaitsInFront) {
  make_pages(4);
  Sequence& first = wait(8);
  Sequence& second = wait(8);
  Sequence& third = wait(8);
  admit();
  ASSERT_THAT(lane.active, ElementsAre(&first, &second));
  grow(first, 20);
  grow(second, 1);
  admit();
  ASSERT_THAT(lane.active, ElementsAre(&first, &second));
  grow(first, 20);
  grow(second, 10);
  admit(); // 3 and 2 pages
  EXPECT_THAT(lane.active, ElementsAre(&first));
  EXPECT_THAT(lane.waiting, ElementsAre(&second, &third));
  EXPECT_EQ(second.slot, -1);
  EXPECT_EQ(second.fed, 0);
  EXPECT_EQ(second.size(), 19) << "it keeps its tokens";
  EXPECT_EQ(pages_of(first).size(), 3U);
}

TEST_F(AdmissionTest, TheOldestIsNeverStuck) {
  make_pages(4);
  Sequence& first = wait(16);
  Sequence& second = wait(16, 64, 0);
  admit();
  ASSERT_THAT(lane.active, ElementsAre(&first, &second));
  grow(first, 1);
  admit(); // the other one has its prompt
  while (first.size() < 64) {
    grow(first, 1);
    if (second.slot >= 0)
      grow(second, 1);
    admit();
    ASSERT_EQ(lane.active.front(), &first);
    ASSERT_GE(std::ssize(pages_of(first)), (first.size() + 15) / 16);
  }
  EXPECT_THAT(lane.active, ElementsAre(&first));
}

TEST_F(AdmissionTest, SamplesOfAPromptShareItsFullPages) {
  make_pages(8);
  Sequence& first = wait(40);
  Sequence& second = wait(40, 64, 0);
  Sequence& third = wait(40, 64, 0);
  Sequence& fourth = wait(40, 64, 0);
  admit(); // 4, and 2 more for each
  EXPECT_THAT(lane.active, ElementsAre(&first, &second, &third));
  EXPECT_THAT(lane.waiting, ElementsAre(&fourth));
  EXPECT_THAT(pages_of(second), IsEmpty()) << "it waits for the prefix";
  grow(first, 1);
  admit();
  EXPECT_EQ(second.fed, 39);
  EXPECT_EQ(pages_of(second)[1], pages_of(first)[1]);
  EXPECT_EQ(pages_of(third)[1], pages_of(first)[1]);
  EXPECT_NE(pages_of(second)[2], pages_of(first)[2]);
  EXPECT_NE(pages_of(third)[2], pages_of(second)[2]);
  EXPECT_EQ(cache->pages().free_pages(), 8 - 2 - 3);
}

TEST_F(AdmissionTest, SequencesBetweenTurnsLoseTheirPagesFirst) {
  make_pages(4);
  Sequence& idle = wait(20, /*limit=*/32);
  admit();
  grow(idle, 0);
  lane.active.clear();
  lane.kept.push_back(&idle);
  Sequence& next = wait(20);
  admit();
  EXPECT_THAT(lane.active, ElementsAre(&next));
  EXPECT_THAT(lane.kept, IsEmpty());
  EXPECT_EQ(idle.slot, -1);
  EXPECT_EQ(idle.fed, 0);
}

} // namespace
} // namespace troupe::models::internal
