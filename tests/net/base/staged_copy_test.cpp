// Blocks of a device that are read and written in chunks, by copies that are
// done when somebody waits for them, and by those of a device that waits.
#include "net/base/copy_stream.hpp"
#include "net/base/staged_copy.hpp"

#include <gtest/gtest.h>

#include "tests/support/net/far_pages.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

namespace troupe::net {
namespace {

using troupe::testing::FarPages;

int under_way = 0;
int most_under_way = 0;
int locked = 0;

using Copy = void (*)(const void* from, void* to, std::size_t size_bytes);

/// A copy that is done at the last moment.
class LateCopy final : public PendingCopy {
public:
  LateCopy(Copy copy, const void* from, void* to, std::size_t size_bytes)
    : copy_(copy),
      from_(from),
      to_(to),
      size_bytes_(size_bytes) {
    most_under_way = std::max(most_under_way, ++under_way);
  }
  void before_kernels() override {}
  void wait() override {
    const Copy copy = std::exchange(copy_, nullptr);
    if (copy == nullptr)
      return;
    copy(from_, to_, size_bytes_);
    --under_way;
  }

private:
  Copy copy_;
  const void* from_;
  void* to_;
  std::size_t size_bytes_;
};

const BlockMemory& memory_with_copies() {
  static constexpr CopyStream copies{
    [](void*, std::size_t) {
      ++locked;
      return true;
    },
    [](void*) { --locked; },
    [](const void* from, void* to, std::size_t size_bytes,
       PendingCopy*) -> std::shared_ptr<PendingCopy> {
      return std::make_shared<LateCopy>(FarPages::memory().read, from, to,
                                        size_bytes);
    },
    [](const void* from, void* to, std::size_t size_bytes,
       PendingCopy*) -> std::shared_ptr<PendingCopy> {
      return std::make_shared<LateCopy>(FarPages::memory().write, from, to,
                                        size_bytes);
    },
    [](void*, PendingCopy&) {}};
  static const BlockMemory memory = [] {
    BlockMemory made = FarPages::memory();
    made.copies = &copies;
    return made;
  }();
  return memory;
}

constexpr std::size_t half_bytes = 1000;

class StagedCopy : public ::testing::TestWithParam<const BlockMemory*> {
protected:
  StagedCopy() : numbers_(10'240) {
    std::iota(numbers_.begin(), numbers_.end(), std::uint8_t{1});
    most_under_way = 0;
  }
  ~StagedCopy() override {
    EXPECT_EQ(under_way, 0) << "no copy is left";
    EXPECT_EQ(locked, 0) << "no page is left locked";
  }
  /// Returns the start of a block of that many bytes, with the numbers.
  std::span<std::byte> block(std::size_t size_bytes) const {
    auto* data = static_cast<std::byte*>(memory_.take(size_bytes));
    memory_.write(numbers_.data(), data, size_bytes);
    return {data, size_bytes};
  }
  std::vector<std::uint8_t> content(std::span<const std::byte> block) const {
    std::vector<std::uint8_t> found(block.size());
    memory_.read(block.data(), found.data(), block.size());
    return found;
  }
  std::vector<std::uint8_t> first(std::size_t size_bytes) const {
    return {numbers_.begin(),
            numbers_.begin() + static_cast<std::ptrdiff_t>(size_bytes)};
  }

  const BlockMemory& memory_ = *GetParam();
  std::vector<std::uint8_t> numbers_;
};

TEST_P(StagedCopy, HandsOutABlockInOrder) {
  for (const std::size_t size_bytes :
       {0UL, 1UL, 999UL, 1000UL, 1001UL, 2000UL, 2001UL, 10'240UL}) {
    std::vector<std::uint8_t> read;
    read_staged(
      memory_, block(size_bytes),
      [&](std::span<const std::byte> chunk, std::size_t offset) {
        EXPECT_EQ(offset, read.size());
        EXPECT_LE(chunk.size(), half_bytes);
        for (const std::byte one : chunk)
          read.push_back(std::to_integer<std::uint8_t>(one));
      },
      half_bytes);
    EXPECT_EQ(read, first(size_bytes));
  }
}

TEST_P(StagedCopy, FillsABlockInOrder) {
  for (const std::size_t size_bytes : {1UL, 1000UL, 1001UL, 3000UL, 10'240UL}) {
    const auto target = block(size_bytes);
    const bool whole = write_staged(
      memory_, target,
      [&](std::span<std::byte> chunk, std::size_t offset) {
        for (std::size_t i = 0; i < chunk.size(); ++i)
          chunk[i] = std::byte{numbers_[offset + i]} ^ std::byte{0xff};
        return true;
      },
      half_bytes);
    EXPECT_TRUE(whole);
    auto wanted = first(size_bytes);
    for (std::uint8_t& one : wanted)
      one ^= 0xff;
    EXPECT_EQ(content(target), wanted);
  }
}

TEST_P(StagedCopy, EndsWhenThereIsNoMoreToFill) {
  const auto target = block(3000);
  EXPECT_FALSE(write_staged(
    memory_, target,
    [](std::span<std::byte>, std::size_t offset) { return offset < 2000; },
    half_bytes));
  EXPECT_EQ(content(target.subspan(2000)),
            (std::vector<std::uint8_t>{numbers_.begin() + 2000,
                                       numbers_.begin() + 3000}));
}

TEST_P(StagedCopy, EndsWithTheErrorOfWhoTakesAChunk) {
  EXPECT_THROW(read_staged(
                 memory_, block(3000),
                 [](std::span<const std::byte>, std::size_t) {
                   throw std::runtime_error("the disk is full");
                 },
                 half_bytes),
               std::runtime_error);
}

TEST_P(StagedCopy, FillsOneHalfWhileTheOtherIsUsed) {
  int chunks = 0;
  read_staged(
    memory_, block(5000),
    [&](std::span<const std::byte>, std::size_t) {
      EXPECT_EQ(under_way, memory_.copies != nullptr && ++chunks < 5 ? 1 : 0);
    },
    half_bytes);
  EXPECT_EQ(most_under_way, memory_.copies != nullptr ? 2 : 0);
}

TEST_P(StagedCopy, OfLargeBlocksIsHowTheHostCopiesThem) {
  const auto target = block(numbers_.size());
  std::vector<std::byte> read(numbers_.size());
  read_block(memory_, target, read.data(), half_bytes);
  EXPECT_TRUE(std::ranges::equal(read, std::as_bytes(std::span(numbers_))));
  std::ranges::reverse(read);
  write_block(memory_, read.data(), target, half_bytes);
  std::ranges::reverse(numbers_);
  EXPECT_EQ(content(target), numbers_);
}

INSTANTIATE_TEST_SUITE_P(All, StagedCopy,
                         ::testing::Values(&memory_with_copies(),
                                           &FarPages::memory()),
                         [](const auto& test) {
                           return std::string(test.param->copies != nullptr
                                                ? "BesideKernels"
                                                : "OfADeviceThatWaits");
                         });

} // namespace
} // namespace troupe::net
