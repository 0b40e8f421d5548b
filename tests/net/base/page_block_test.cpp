#include "net/base/page_block.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

namespace troupe::net {
namespace {

constexpr std::size_t kBlockBytes = 8 << 20;

class PageBlocks : public ::testing::TestWithParam<PageSharing> {};

TEST_P(PageBlocks, ReleasedPagesFreeMemoryAndReadAsZero) {
  PageBlock block(kBlockBytes, GetParam());
  EXPECT_EQ(block.resident_bytes(), 0u);
  std::memset(block.data(), 7, kBlockBytes);
  EXPECT_EQ(block.resident_bytes(), kBlockBytes);
  block.release_pages();
  EXPECT_EQ(block.resident_bytes(), 0u);
  EXPECT_EQ(block.data()[kBlockBytes - 1], std::byte{0});
  std::memset(block.data(), 8, kBlockBytes); // the address is still valid
  EXPECT_EQ(block.data()[0], std::byte{8});
}

TEST_P(PageBlocks, MovesKeepTheAddress) {
  PageBlock block(kBlockBytes, GetParam());
  auto* data = block.data();
  PageBlock other;
  other = std::move(block);
  EXPECT_EQ(other.data(), data);
  EXPECT_EQ(PageBlock(std::move(other)).size_bytes(), kBlockBytes);
}

INSTANTIATE_TEST_SUITE_P(Sharing, PageBlocks,
                         ::testing::Values(PageSharing::none,
                                           PageSharing::by_descriptor));

TEST(PageBlock, ASharedBlockIsMappedByItsHandleAndSeesEveryChange) {
  PageBlock block(kBlockBytes, PageSharing::by_descriptor);
  ASSERT_TRUE(block.place());
  const auto mapped = MappedHandle::open(*block.place());
  ASSERT_TRUE(mapped);
  ASSERT_EQ(mapped->bytes().size(), kBlockBytes);
  std::memset(block.data(), 5, kBlockBytes);
  EXPECT_EQ(mapped->bytes()[kBlockBytes / 2], std::byte{5});
  EXPECT_NE(mapped->bytes().data(), block.data());
}

TEST(PageBlock, APrivateBlockHasLargePages) {
  std::string mode;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"),
               mode);
  if (mode.empty() || mode.find("[never]") != std::string::npos)
    GTEST_SKIP() << "this system has no large pages";
  const auto faults = [] {
    rusage use = {};
    ::getrusage(RUSAGE_THREAD, &use);
    return use.ru_minflt;
  };
  PageBlock block(kBlockBytes, PageSharing::none);
  const auto before = faults();
  std::memset(block.data(), 7, kBlockBytes);
  const auto small_pages = static_cast<long>(kBlockBytes / 4096);
  EXPECT_LT(faults() - before, small_pages / 2);
}

TEST(PageBlock, APrivateBlockHasNoHandle) {
  EXPECT_FALSE(PageBlock(kBlockBytes, PageSharing::none).place());
  EXPECT_FALSE(PageBlock().place());
}

TEST(PageBlock, AHandleOfAnotherFileIsNotMapped) {
  const PageBlock block(kBlockBytes, PageSharing::by_descriptor);
  const PageBlock other(kBlockBytes, PageSharing::by_descriptor);
  auto place = *block.place();
  place.descriptor = other.place()->descriptor; // a reused descriptor number
  EXPECT_FALSE(MappedHandle::open(place));
  place = *block.place();
  place.size_bytes *= 2;
  EXPECT_FALSE(MappedHandle::open(place));
  place = *block.place();
  place.process = 0; // no such process
  EXPECT_FALSE(MappedHandle::open(place));
  place = *block.place();
  std::ranges::fill(place.name, 'x'); // without an end mark
  EXPECT_FALSE(MappedHandle::open(place));
}

} // namespace
} // namespace troupe::net
