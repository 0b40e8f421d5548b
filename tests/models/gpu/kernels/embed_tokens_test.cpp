// Embeddings of GPU kernels, run on the host, against the CPU's.
#include "models/gpu/kernels/embed_tokens.hpp"
#include "models/kernels/embed.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::in_every_order;
using troupe::testing::read_back;
using troupe::testing::stored_as;

/// More elements than a block has lanes.
constexpr std::int64_t embedded_width = 2 * 256 + 3;
constexpr std::int64_t known_tokens = 5; // 10 to 14
constexpr std::int64_t known_positions = 4;

/// Tokens of this rank, and of the ranks below and above.
const std::vector<DecodeToken> embedded_tokens{
  {10, 0, 0}, {14, 3, 2}, {9, 1, 3}, {15, 2, 1}, {12, 4, 3}};

template <class Table, class T>
std::vector<float> embedded(bool with_positions) {
  const auto table
    = stored_as<Table>(bf16_numbers(known_tokens * embedded_width, 1));
  const auto positions
    = stored_as<Table>(bf16_numbers(known_positions * embedded_width, 2));
  return in_every_order([&](LaneOrder order) {
    std::vector<T> to(embedded_tokens.size() * embedded_width);
    const EmbedTokens<Table, T> kernel{table.data(),
                                       known_tokens,
                                       10,
                                       with_positions ? positions.data()
                                                      : nullptr,
                                       embedded_tokens.data(),
                                       to.data(),
                                       embedded_width,
                                       1.7F};
    run_on_host(kernel, kernel.blocks(std::ssize(embedded_tokens)), order);
    return read_back(to);
  });
}

TEST(GpuEmbedTokens, HasTheCpusBitsRoundedOnce) {
  const auto table = bf16_numbers(known_tokens * embedded_width, 1);
  const auto positions = bf16_numbers(known_positions * embedded_width, 2);
  for (const bool with_positions : {false, true}) {
    Embedding from{.width = embedded_width,
                   .tokens = {table.data(), known_tokens},
                   .first_token = 10,
                   .factor = 1.7F};
    if (with_positions)
      from.positions = {positions.data(), known_positions};
    std::vector<float> want(embedded_tokens.size() * embedded_width);
    embed(from, embedded_tokens, want.data());
    EXPECT_EQ((embedded<float, float>(with_positions)), want);
    EXPECT_EQ((embedded<Bf16, float>(with_positions)), want);
    const auto rounded = read_back(stored_as<Bf16>(want));
    EXPECT_EQ((embedded<float, Bf16>(with_positions)), rounded);
    EXPECT_EQ((embedded<Bf16, Bf16>(with_positions)), rounded);
  }
}

} // namespace
} // namespace troupe::models::gpu
