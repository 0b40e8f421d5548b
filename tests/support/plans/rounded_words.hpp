// Planes of numbers for tests of moves that round: fp32 numbers that name
// themselves in their upper halves too, and what kernels read of them.
#pragma once

#include "config/base/byte_runs.hpp"
#include "config/base/float16.hpp"
#include "plans/weights/layout.hpp"

#include "tests/support/plans/written_once.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

namespace troupe::plans {

/// Returns the bits of a plane's numbers, which are finite; padding is 0.
inline std::vector<std::uint32_t> fill_numbers(const Shard& shard) {
  auto words = fill(shard);
  for (auto& word : words)
    word = word * 2654435761u & 0xBFFF'FFFFu;
  return words;
}

inline std::uint16_t rounded_bits(std::uint32_t word) {
  return f32_to_bf16(std::bit_cast<float>(word));
}

/// Returns a plane as kernels read it, with the `rounded` parameters in bf16.
inline std::vector<std::uint32_t> as_read(const Shard& shard,
                                          std::vector<std::uint32_t> words,
                                          const std::vector<bool>& rounded) {
  for (const auto& box : shard.boxes) {
    if (!rounded.at(box.parameter))
      continue;
    const auto first = box.offset_bytes / sizeof(float);
    const auto count = static_cast<std::uint64_t>(box.num_elements());
    for (auto at = first; at < first + count; ++at)
      words.at(at) = std::uint32_t{rounded_bits(words[at])} << 16;
  }
  return words;
}

/// Copies runs of fp32 to runs of bf16; `bytes` are those of fp32.
inline void round_runs(const ByteRuns& runs, const void* from, void* to) {
  const auto* source = static_cast<const std::byte*>(from) + runs.source_offset;
  auto* target = static_cast<std::byte*>(to) + runs.target_offset;
  for (std::uint64_t run = 0; run < runs.runs; ++run)
    for (std::uint64_t i = 0; i < runs.bytes / sizeof(float); ++i) {
      std::uint32_t word = 0;
      std::memcpy(&word, source + run * runs.source_stride + 4 * i, 4);
      const std::uint16_t bits = rounded_bits(word);
      std::memcpy(target + run * runs.target_stride + 2 * i, &bits, 2);
    }
}

/// Copies runs of bf16 to runs of fp32, likewise.
inline void widen_runs(const ByteRuns& runs, const void* from, void* to) {
  const auto* source = static_cast<const std::byte*>(from) + runs.source_offset;
  auto* target = static_cast<std::byte*>(to) + runs.target_offset;
  for (std::uint64_t run = 0; run < runs.runs; ++run)
    for (std::uint64_t i = 0; i < runs.bytes / sizeof(float); ++i) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, source + run * runs.source_stride + 2 * i, 2);
      const std::uint32_t word = std::uint32_t{bits} << 16;
      std::memcpy(target + run * runs.target_stride + 4 * i, &word, 4);
    }
}

} // namespace troupe::plans
