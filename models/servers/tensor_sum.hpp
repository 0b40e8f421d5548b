// The sum by which a server knows that a tensor arrived as it was: two of 64
// bits, at about the rate of memory here and by a few NumPy calls in Python.
// Found for certain: any change within one word of 8 bytes, and two words of a
// chunk that changed places. Other mistakes (moved, torn, old or zeroed parts)
// are missed about once in 2^64 times. Not found: what leaves the bytes as they
// are, so names, types and shapes are checked beside it; and bytes made to have
// the sum: it protects from mistakes, not from an attacker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace troupe::models {

// The bytes, with zeros up to a multiple of 8, are 64-bit little-endian words;
// chunk c has 32768 of them. With arithmetic modulo 2^64, mix as splitmix64 and
// its increment G:
//   key(j)  = mix(1 + (j + 1) G) | 1
//   low(c)  = sum of (word & 0xffffffff) key(j) over the words j of chunk c
//   high(c) = sum of (word >> 32) key(j)
//   Low     = mix(number of bytes) + sum over c of mix(low(c) + (2 c + 1) G)
//   High    = mix(number of bytes) + sum over c of mix(high(c) + (2 c + 2) G)

/// A chunk, its keys and NumPy's results stay in a cache.
inline constexpr std::size_t sum_chunk_bytes = std::size_t{256} << 10;

/// The sum of some chunks; those of a tensor add up in any order.
struct TensorSum {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  TensorSum& operator+=(const TensorSum& other) {
    low += other.low;
    high += other.high;
    return *this;
  }
};

/// Returns the sum of chunk `index` of a tensor; only the last may be shorter
/// than a chunk.
TensorSum chunk_sum(std::span<const std::byte> chunk, std::uint64_t index);
/// Returns the text of a tensor of that many bytes whose chunks add up to
/// `sum`: 32 hexadecimal digits, Low first.
std::string sum_text(TensorSum sum, std::uint64_t num_bytes);
/// Returns the text of a whole tensor.
std::string tensor_sum(std::span<const std::byte> bytes);

} // namespace troupe::models
