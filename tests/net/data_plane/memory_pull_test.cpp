#include "net/base/defaults.hpp"
#include "net/data_plane/memory_pull.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace troupe::net {
namespace {

using Bytes = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

/// Source and target of every run of 4 bytes.
void append_words(const ByteRuns& part, Bytes& words) {
  for (std::uint64_t i = 0; i < part.runs; ++i)
    for (std::uint64_t at = 0; at < part.bytes; at += 4)
      words.emplace_back(part.source_offset + i * part.source_stride + at,
                         part.target_offset + i * part.target_stride + at);
}

TEST(MemoryPull, RequestsAreBoundedAndCoverEveryByteOnceInOrder) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<ByteRuns> parts;
    for (std::uint64_t i = 0; i < 1 + random() % 5; ++i) {
      const std::uint64_t run_bytes
        = 4 * (random() % (random() % 3 == 0 ? 5'000'000 : 200));
      const auto runs
        = run_bytes > 10'000 ? random() % 3 : random() % 20'000 / (1 + i);
      parts.push_back({.source_offset = random() % 1000,
                       .target_offset = random() % 1000,
                       .bytes = run_bytes,
                       .runs = runs,
                       .source_stride = run_bytes + 4 * (random() % 10),
                       .target_stride = run_bytes});
    }
    Bytes wanted, asked;
    std::uint64_t bytes = 0, runs = 0;
    for (const ByteRuns& part : parts) {
      append_words(part, wanted);
      bytes += part.total_bytes();
      runs += part.runs;
    }
    const auto requests = cut_requests(parts);
    for (const MemoryRequest& request : requests) {
      EXPECT_LE(request.size_bytes, kMemoryChunkBytes);
      EXPECT_LE(request.runs, kMaxRequestRuns);
      for (const ByteRuns& part : request.parts)
        append_words(part, asked);
    }
    EXPECT_TRUE(asked == wanted) << "round " << round;
  }
}

TEST(MemoryPull, RequestsOfMatricesGrowWithBytesNotRows) {
  std::vector<ByteRuns> parts; // 64 matrices of 256 rows of 1 KiB
  for (std::uint64_t i = 0; i < 64; ++i)
    parts.push_back({.source_offset = i * 512 * 1024,
                     .target_offset = i * 256 * 1024,
                     .bytes = 1024,
                     .runs = 256,
                     .source_stride = 2048,
                     .target_stride = 1024});
  EXPECT_EQ(cut_requests(parts).size(), 2u);
  EXPECT_EQ(cut_requests({}).size(), 1u) << "somebody waits for an answer";
}

} // namespace
} // namespace troupe::net
