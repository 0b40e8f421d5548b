#include "models/stream_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace troupe::models {
namespace {

TEST(StreamCopy, CopiesAnyRangeAndNothingBesideIt) {
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
        stream_copy(target.data() + to, source.data() + from, bytes);
        end_stream_copies();
        ASSERT_EQ(target, expected) << to << " " << from << " " << bytes;
      }
}

} // namespace
} // namespace troupe::models
