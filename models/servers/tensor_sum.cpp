#include "models/servers/tensor_sum.hpp"

#include "config/base/error.hpp"
#include "models/kernels/host_simd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace troupe::models {

namespace {

static_assert(std::endian::native == std::endian::little);

using Word = std::uint64_t;
constexpr std::size_t words_per_chunk = sum_chunk_bytes / sizeof(Word);
constexpr unsigned half_bits = 32;
constexpr Word increment = 0x9e3779b97f4a7c15;
/// The first seed for which no two keys have the same low half, so that a swap
/// of two words is found: their halves differ by less than 2^32, the keys not
/// by a multiple of it.
constexpr Word key_seed = 1;

/// The finalizer of splitmix64: one to one.
constexpr Word mixed(Word x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

using Keys = std::array<Word, words_per_chunk>;

const Keys& chunk_keys() {
  static const Keys keys = [] {
    Keys made{};
    for (std::size_t j = 0; j < made.size(); ++j)
      made[j] = mixed(key_seed + (j + 1) * increment) | 1;
    return made;
  }();
  return keys;
}

/// Returns the sums of a chunk's words, before they are mixed.
TensorSum keyed_sum(const std::byte* words, std::size_t count,
                    const Word* keys) {
  Word low = 0;
  Word high = 0;
  on_best_isa([&] {
    Word low_sum = 0;
    Word high_sum = 0;
#pragma omp simd reduction(+ : low_sum, high_sum)
    for (std::size_t j = 0; j < count; ++j) {
      Word word = 0;
      std::memcpy(&word, words + j * sizeof word, sizeof word);
      low_sum += (word & 0xffffffff) * keys[j];
      high_sum += (word >> half_bits) * keys[j];
    }
    low = low_sum;
    high = high_sum;
  });
  return {low, high};
}

} // namespace

TensorSum chunk_sum(std::span<const std::byte> chunk, std::uint64_t index) {
  TROUPE_CHECK(chunk.size() <= sum_chunk_bytes, "more than a chunk");
  const auto& keys = chunk_keys();
  const auto count = chunk.size() / sizeof(Word);
  auto sum = keyed_sum(chunk.data(), count, keys.data());
  if (const auto rest = chunk.subspan(count * sizeof(Word)); !rest.empty()) {
    std::array<std::byte, sizeof(Word)> last{};
    std::ranges::copy(rest, last.begin());
    sum += keyed_sum(last.data(), 1, &keys[count]);
  }
  return {mixed(sum.low + (2 * index + 1) * increment),
          mixed(sum.high + (2 * index + 2) * increment)};
}

std::string sum_text(TensorSum sum, std::uint64_t num_bytes) {
  sum += {mixed(num_bytes), mixed(num_bytes)};
  return fmt::format("{:016x}{:016x}", sum.low, sum.high);
}

std::string tensor_sum(std::span<const std::byte> bytes) {
  TensorSum sum;
  for (std::uint64_t i = 0; i * sum_chunk_bytes < bytes.size(); ++i) {
    const auto rest = bytes.subspan(i * sum_chunk_bytes);
    sum += chunk_sum(rest.first(std::min(rest.size(), sum_chunk_bytes)), i);
  }
  return sum_text(sum, bytes.size());
}

} // namespace troupe::models
