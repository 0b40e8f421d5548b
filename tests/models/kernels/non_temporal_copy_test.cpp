#include "models/kernels/non_temporal_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace troupe::models {
namespace {

TEST(NonTemporalCopy, CopiesAnyRangeAndNothingElse) {
  std::vector<std::byte> source(400);
  for (std::size_t i = 0; i < source.size(); ++i)
    source[i] = std::byte(i * 7 + 1);
  for (std::size_t to = 0; to < 65; to += 3)
    for (std::size_t from = 0; from < 65; from += 5)
      for (const std::size_t bytes : {0, 1, 4, 63, 64, 65, 128, 200, 257}) {
        std::vector<std::byte> target(400, std::byte{9});
        auto expected = target;
        std::copy_n(source.begin() + std::ptrdiff_t(from), bytes,
                    expected.begin() + std::ptrdiff_t(to));
        non_temporal_copy(
          target.data(), source.data(),
          {.source_offset = from, .target_offset = to, .bytes = bytes});
        end_stream_copies();
        ASSERT_EQ(target, expected) << to << " " << from << " " << bytes;
      }
}

TEST(NonTemporalCopy, CopiesStridedRunsAndNothingBetween) {
  std::vector<std::byte> source(std::size_t{64} << 10);
  for (std::size_t i = 0; i < source.size(); ++i)
    source[i] = std::byte(i * 7 + i / 256);
  for (const std::size_t bytes : {4, 60, 64, 200, 1024, 5000})
    for (const std::size_t gap : {0, 4, 64, 100}) {
      const ByteRuns runs{.source_offset = 4,
                          .target_offset = 12,
                          .bytes = bytes,
                          .runs = 9,
                          .source_stride = bytes + 3 * gap,
                          .target_stride = bytes + gap};
      std::vector<std::byte> target(source.size(), std::byte{9});
      auto expected = target;
      for (std::size_t i = 0; i < runs.runs; ++i)
        std::copy_n(source.data() + 4 + i * runs.source_stride, bytes,
                    expected.data() + 12 + i * runs.target_stride);
      non_temporal_copy(target.data(), source.data(), runs);
      end_stream_copies();
      ASSERT_EQ(target, expected) << bytes << " " << gap;
    }
}

} // namespace
} // namespace troupe::models
