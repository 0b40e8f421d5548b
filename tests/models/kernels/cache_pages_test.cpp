// Which pages of the KV cache sequences have: as they grow, share a prefix,
// write to what they share, and end.
#include "config/base/error.hpp"
#include "models/kernels/cache_pages.hpp"

#include <gmock/gmock.h>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Two pools of 3 slots and 5 pages with 4 tokens each.
CachePages two_pools() {
  return CachePages(
    {.slots = 6, .tokens = 14, .page_tokens = 4, .pages = 10, .pools = 2});
}

constexpr PageCopy no_copy{};

TEST(CachePages, ASequenceTakesThemAsItGrows) {
  CachePages pages = two_pools();
  const auto slot = pages.take_slot();
  EXPECT_THAT(pages.pages(slot), IsEmpty());
  EXPECT_EQ(pages.make_room(slot, 0, 4), no_copy);
  EXPECT_THAT(pages.pages(slot), ElementsAre(0));
  EXPECT_EQ(pages.make_room(slot, 4, 5), no_copy);
  EXPECT_EQ(pages.make_room(slot, 5, 8), no_copy);
  EXPECT_THAT(pages.pages(slot), ElementsAre(0, 1));
  EXPECT_EQ(pages.free_pages(), 3);
  EXPECT_THROW(pages.make_room(slot, 12, 13), InvariantError) << "a gap";
  EXPECT_THROW(pages.make_room(slot, 8, 15), InvariantError) << "too long";
}

TEST(CachePages, IfTheyRunOutNothingChanges) {
  CachePages pages = two_pools();
  const auto slot = pages.take_slot();
  const auto other = pages.take_slot();
  pages.make_room(slot, 0, 14);
  EXPECT_EQ(pages.make_room(other, 0, 8), std::nullopt);
  EXPECT_THAT(pages.pages(other), IsEmpty());
  EXPECT_EQ(pages.make_room(other, 0, 4), no_copy);
  EXPECT_EQ(pages.free_pages(), 0);
}

TEST(CachePages, ThoseOfASequenceThatEndsAreFree) {
  CachePages pages = two_pools();
  const auto slot = pages.take_slot();
  pages.make_room(slot, 0, 14);
  pages.free_slot(slot);
  EXPECT_EQ(pages.free_pages(), 5);
  EXPECT_EQ(pages.take_slot(), slot);
  EXPECT_THAT(pages.pages(slot), IsEmpty());
}

TEST(CachePages, AFullPageIsSharedAndTheLastOneIsCopiedByWhoWritesFirst) {
  CachePages pages = two_pools();
  const auto first = pages.take_slot();
  const auto second = pages.take_slot();
  const auto third = pages.take_slot();
  pages.make_room(first, 0, 7);
  pages.share(first, second, 6);
  pages.share(first, third, 6);
  EXPECT_THAT(pages.pages(third), ElementsAre(0, 1));
  EXPECT_EQ(pages.free_pages(), 3) << "no page of their own yet";
  EXPECT_EQ(pages.make_room(second, 6, 7), (PageCopy{1, 2, 2}));
  EXPECT_THAT(pages.pages(second), ElementsAre(0, 2));
  EXPECT_EQ(pages.make_room(first, 7, 8), (PageCopy{1, 3, 3}));
  EXPECT_EQ(pages.make_room(third, 6, 7), no_copy) << "it is the last user";
  EXPECT_THAT(pages.pages(third), ElementsAre(0, 1));
  pages.free_slot(first);
  pages.free_slot(second);
  EXPECT_EQ(pages.free_pages(), 3) << "the third has two";
  EXPECT_THAT(pages.pages(third), ElementsAre(0, 1));
}

TEST(CachePages, ASequenceThatGoesBackIntoSharedPagesGetsItsOwn) {
  CachePages pages = two_pools();
  const auto first = pages.take_slot();
  const auto second = pages.take_slot();
  pages.make_room(first, 0, 8);
  pages.share(first, second, 8);
  EXPECT_EQ(pages.make_room(second, 3, 8), (PageCopy{0, 2, 3}));
  EXPECT_THAT(pages.pages(second), ElementsAre(2, 3));
  EXPECT_THAT(pages.pages(first), ElementsAre(0, 1));
  EXPECT_EQ(pages.make_room(second, 4, 8), no_copy);
}

TEST(CachePages, APrefixReplacesWhatTheSequenceHad) {
  CachePages pages = two_pools();
  const auto first = pages.take_slot();
  const auto second = pages.take_slot();
  pages.make_room(first, 0, 4);
  pages.make_room(second, 0, 12);
  pages.share(first, second, 4);
  EXPECT_THAT(pages.pages(second), ElementsAre(0));
  EXPECT_EQ(pages.free_pages(), 4);
}

TEST(CachePages, TheTableShowsASparePageWhereASlotHasNone) {
  CachePages pages = two_pools();
  const auto slot = pages.take_slot();
  EXPECT_EQ(pages.pages_per_slot(), 4);
  EXPECT_EQ(CachePages::spare_pages(pages.room()), 1);
  pages.make_room(slot, 0, 5);
  const auto row = [&] { return pages.table().first(4); };
  EXPECT_THAT(row(), ElementsAre(0, 1, 10, 10));
  pages.free_slot(slot);
  EXPECT_THAT(row(), ElementsAre(10, 10, 10, 10));
}

TEST(CachePages, APoolHasItsOwn) {
  CachePages pages = two_pools();
  EXPECT_EQ(pages.slots_of(1), 3);
  const auto mine = pages.take_slot(0);
  const auto other = pages.take_slot(1);
  EXPECT_EQ(other, 3);
  pages.make_room(other, 0, 9);
  EXPECT_THAT(pages.pages(other), ElementsAre(5, 6, 7));
  EXPECT_EQ(pages.free_pages(0), 5);
  EXPECT_EQ(pages.free_pages(1), 2);
  EXPECT_THROW(pages.share(other, mine, 4), InvariantError);
  pages.free_slot(other);
  EXPECT_EQ(pages.free_pages(1), 5);
  pages.take_slot(0);
  pages.take_slot(0);
  EXPECT_THROW(pages.take_slot(0), InvariantError);
}

TEST(CacheRoom, HasPagesForOneWholeSequenceOfEachPool) {
  // 10 tokens are 3 pages of 4
  EXPECT_EQ(
    cache_room(8, 1, 100, 10, 4),
    (CacheRoom{.slots = 8, .tokens = 10, .page_tokens = 4, .pages = 24}))
    << "no more than all can have";
  EXPECT_EQ(
    cache_room(8, 4, 7, 10, 4),
    (CacheRoom{
      .slots = 7, .tokens = 10, .page_tokens = 4, .pages = 7, .pools = 2}));
  EXPECT_EQ(
    cache_room(8, 4, 3, 10, 16),
    (CacheRoom{
      .slots = 3, .tokens = 10, .page_tokens = 16, .pages = 3, .pools = 3}))
    << "pages of whole sequences";
}

} // namespace
} // namespace troupe::models
