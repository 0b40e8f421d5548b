#include "net/base/page_block.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
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
  ASSERT_EQ(mapped->block().bytes.size(), kBlockBytes);
  std::memset(block.data(), 5, kBlockBytes);
  EXPECT_EQ(mapped->block().bytes[kBlockBytes / 2], std::byte{5});
  EXPECT_NE(mapped->block().bytes.data(), block.data());
}

/// Returns the kernel's flags of the mapping that holds `address` (the line
/// VmFlags of /proc/self/smaps), with a space before and after each; "" if
/// there is none.
std::string mapping_flags(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0;
    std::uintptr_t last = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &first, &last) == 2)
      inside = first <= wanted && wanted < last;
    else if (inside && line.starts_with("VmFlags:"))
      return line.substr(std::strlen("VmFlags:"));
  }
  return {};
}

// Whether the kernel has a large page to give depends on how fragmented the
// machine's memory is; that it was asked for them does not.
TEST(PageBlock, APrivateBlockAsksForLargePages) {
  std::string mode;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"),
               mode);
  if (mode.empty())
    GTEST_SKIP() << "this system has no large pages";
  const PageBlock block(kBlockBytes, PageSharing::none);
  EXPECT_NE(mapping_flags(block.data()).find(" hg "), std::string::npos);
  const PageBlock shared(kBlockBytes, PageSharing::by_descriptor);
  const std::string flags = mapping_flags(shared.data());
  EXPECT_NE(flags.find(" sh "), std::string::npos); // the right mapping
  EXPECT_EQ(flags.find(" hg "), std::string::npos);
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
