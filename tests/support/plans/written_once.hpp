// Runs a plan of moves on buffers whose elements name themselves, and expects
// every element of a target to be written exactly once (I3).
#pragma once

#include "plans/weights/move_plan.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <vector>

namespace troupe::plans {

/// Number of an element of a parameter, never 0.
inline std::uint32_t element(std::uint32_t parameter, std::int64_t row,
                             std::int64_t col) {
  return (parameter + 1) * 1'000'003u + std::uint32_t(row) * 1009u
         + std::uint32_t(col) + 1;
}

inline std::vector<std::uint32_t> fill(const Shard& shard) {
  std::vector<std::uint32_t> buffer(shard.size_bytes / 4, 0);
  for (const auto& box : shard.boxes) {
    auto at = box.offset_bytes / 4;
    for (auto row = box.row0; row < box.row1; ++row)
      for (auto col = box.col0; col < box.col1; ++col)
        buffer.at(at++) = element(box.parameter, row, col);
  }
  return buffer;
}

/// Runs what `shard` receives and checks every element of its boxes.
inline void expect_written_once(const Shard& shard,
                                const std::vector<Transfer>& plan,
                                const Layout& source) {
  const auto expected = fill(shard);
  std::vector<std::uint32_t> buffer(expected.size(), 0);
  std::vector<int> writes(expected.size(), 0);
  for (const auto& t : transfers_to(plan, shard.device)) {
    const auto sent = fill(source.of(t.from));
    for (std::uint64_t i = 0; i < t.total_bytes() / 4; ++i) {
      const auto run = i / (t.bytes / 4), in_run = i % (t.bytes / 4);
      const auto at = (t.target_offset + run * t.target_stride) / 4 + in_run;
      buffer.at(at)
        = sent.at((t.source_offset + run * t.source_stride) / 4 + in_run);
      ++writes.at(at);
    }
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const bool padding = expected[i] == 0;
    ASSERT_TRUE(padding ? writes[i] <= 1 : writes[i] == 1);
    ASSERT_EQ(buffer[i], expected[i]) << "padding stays zero";
  }
}

} // namespace troupe::plans
