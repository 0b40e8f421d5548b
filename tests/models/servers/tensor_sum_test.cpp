// Sums of tensors: what they find, and that they are those of NumPy and of
// plain Python (tests/e2e/vllm_plugin_test.py).
#include "models/servers/tensor_sum.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::models {
namespace {

using TensorBytes = std::vector<std::byte>;
constexpr std::size_t word_bytes = 8;
/// Three chunks and a part of one, whose last word is not whole.
constexpr std::size_t odd_size = 3 * sum_chunk_bytes + 5 * word_bytes + 3;

/// The bytes of tests/support/tensor_sum.py: `pattern`.
TensorBytes pattern(std::size_t size) {
  TensorBytes bytes(size);
  std::uint64_t state = 1;
  for (auto& byte : bytes) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

std::string sum_without_order(const TensorBytes& bytes) {
  std::vector<std::uint64_t> order((bytes.size() + sum_chunk_bytes - 1)
                                   / sum_chunk_bytes);
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  TensorSum sum;
  for (const auto i : order) {
    const auto rest = std::span(bytes).subspan(i * sum_chunk_bytes);
    sum += chunk_sum(rest.first(std::min(rest.size(), sum_chunk_bytes)), i);
  }
  return sum_text(sum, bytes.size());
}

TEST(TensorSum, IsThatOfNumpyAndOfPlainPython) {
  EXPECT_EQ(tensor_sum({}), "00000000000000000000000000000000");
  EXPECT_EQ(tensor_sum(pattern(1)), "2e84b7fbf7cf90bcc50ab487b1c46bd9");
  EXPECT_EQ(tensor_sum(pattern(64)), "31e98d1e76ff90ffc5acde1c692c7125");
  EXPECT_EQ(tensor_sum(pattern(odd_size)), "dd8034f823c2eaee103116182573cd82");
}

TEST(TensorSum, IsTheSameInAnyOrderOfChunks) {
  for (const auto size : {std::size_t{5}, sum_chunk_bytes, odd_size})
    EXPECT_EQ(sum_without_order(pattern(size)), tensor_sum(pattern(size)));
}

TEST(TensorSum, FindsEachFlippedBit) {
  auto bytes = pattern(odd_size);
  const auto right = tensor_sum(bytes);
  std::mt19937_64 draw(7);
  for (int i = 0; i < 200; ++i) {
    const auto at = i < 8 ? bytes.size() - 1 : draw() % bytes.size();
    const auto bit = static_cast<std::byte>(1U << (i % 8));
    bytes[at] ^= bit;
    EXPECT_NE(tensor_sum(bytes), right) << at;
    bytes[at] ^= bit;
  }
  EXPECT_EQ(tensor_sum(bytes), right);
}

/// Swaps two ranges of bytes that do not overlap.
void swap_ranges(TensorBytes& bytes, std::size_t a, std::size_t b,
                 std::size_t size) {
  std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(a),
                   bytes.begin() + static_cast<std::ptrdiff_t>(a + size),
                   bytes.begin() + static_cast<std::ptrdiff_t>(b));
}

TEST(TensorSum, FindsWordsAndBlocksThatChangedPlaces) {
  auto bytes = pattern(odd_size);
  const auto right = tensor_sum(bytes);
  for (const auto& [a, b, size] : std::vector<std::array<std::size_t, 3>>{
         {0, word_bytes, word_bytes},
         {0, sum_chunk_bytes - word_bytes, word_bytes},
         {16, sum_chunk_bytes + 16, word_bytes},
         {4, 12, 4},
         {0, 4096, 4096},
         {0, sum_chunk_bytes, sum_chunk_bytes},
         {sum_chunk_bytes, 2 * sum_chunk_bytes, sum_chunk_bytes}}) {
    swap_ranges(bytes, a, b, size);
    EXPECT_NE(tensor_sum(bytes), right) << a << " " << b;
    swap_ranges(bytes, a, b, size);
  }
}

// The words differ in their highest bit alone, which a sum of products of whole
// words does not find.
TEST(TensorSum, FindsTheSwappedSignsOfEqualNumbers) {
  std::vector<float> numbers(64, 0.5F);
  numbers[11] = -0.5F;
  const auto right = tensor_sum(std::as_bytes(std::span(numbers)));
  for (const std::size_t other : {1, 13, 63}) {
    std::swap(numbers[11], numbers[other]);
    EXPECT_NE(tensor_sum(std::as_bytes(std::span(numbers))), right) << other;
    std::swap(numbers[11], numbers[other]);
  }
}

TEST(TensorSum, FindsShiftedZeroedAndOldParts) {
  const auto bytes = pattern(odd_size);
  const auto right = tensor_sum(bytes);
  for (const std::ptrdiff_t by : {1, 4, 8, 4096}) {
    auto shifted = bytes;
    std::ranges::rotate(shifted, shifted.begin() + by);
    EXPECT_NE(tensor_sum(shifted), right) << by;
  }
  auto zeroed = bytes;
  std::fill_n(zeroed.begin() + 8192, 4096, std::byte{0});
  EXPECT_NE(tensor_sum(zeroed), right);
  auto torn = pattern(odd_size + 1); // an older tensor's end
  std::copy_n(torn.begin() + 300'000, 300'000, zeroed.begin());
  EXPECT_NE(tensor_sum(zeroed), right);
}

TEST(TensorSum, FindsACutOrPaddedEnd) {
  auto bytes = pattern(odd_size);
  std::set<std::string> seen{tensor_sum(bytes)};
  for (int cut = 0; cut < 20; ++cut) {
    bytes.pop_back();
    EXPECT_TRUE(seen.insert(tensor_sum(bytes)).second) << cut;
  }
  bytes.assign(24, std::byte{0}); // zeros are no padding
  for (; !bytes.empty(); bytes.pop_back())
    EXPECT_TRUE(seen.insert(tensor_sum(bytes)).second) << bytes.size();
}

// That is why two words of a chunk that are swapped are found for certain.
TEST(TensorSum, NoTwoKeysOfAChunkHaveTheSameLowHalf) {
  constexpr std::uint64_t increment = 0x9e3779b97f4a7c15;
  std::set<std::uint32_t> halves;
  for (std::uint64_t j = 1; j <= sum_chunk_bytes / word_bytes; ++j) {
    auto x = 1 + j * increment;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    halves.insert(static_cast<std::uint32_t>((x ^ (x >> 31)) | 1));
  }
  EXPECT_EQ(halves.size(), sum_chunk_bytes / word_bytes);
}

} // namespace
} // namespace troupe::models
