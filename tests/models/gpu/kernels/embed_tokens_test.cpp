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

/// Tokens of this rank, of the ranks below and above, and of the draw before.
const std::vector<DecodeToken> embedded_tokens{
  {10, 0, 0}, {14, 3, 2}, {9, 1, 3},           {15, 2, 1},
  {12, 4, 3}, {-3, 5, 1}, {drawn_in(1), 6, 0}, {drawn_in(0), 7, 3}};
const std::vector<DrawnToken> drawn_before{{12, 0}, {-1, 0}, {14, 0}};

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
                                       1.7F,
                                       drawn_before.data()};
    run_on_host(kernel, kernel.blocks(std::ssize(embedded_tokens)), order);
    return read_back(to);
  });
}

/// Expects tokens 14, none and 12 in the last rows.
void expect_embedded_draws(const std::vector<float>& rows,
                           const std::vector<float>& positions) {
  const auto table = bf16_numbers(known_tokens * embedded_width, 1);
  for (std::int64_t j = 0; j < embedded_width; ++j) {
    const auto at = [&](std::int64_t row) {
      return static_cast<std::size_t>(row * embedded_width + j);
    };
    EXPECT_EQ(rows[at(5)], 1.7F * table[at(4)] + positions[at(1)]);
    EXPECT_EQ(rows[at(6)], positions[at(0)]);
    EXPECT_EQ(rows[at(7)], 1.7F * table[at(2)] + positions[at(3)]);
  }
}

TEST(GpuEmbedTokens, HasTheCpusBitsRoundedOnce) {
  const auto table = bf16_numbers(known_tokens * embedded_width, 1);
  const auto positions = bf16_numbers(known_positions * embedded_width, 2);
  const std::vector<float> none(positions.size());
  for (const bool with_positions : {false, true}) {
    Embedding from{.width = embedded_width,
                   .tokens = {table.data(), known_tokens},
                   .first_token = 10,
                   .factor = 1.7F,
                   .drawn_N = drawn_before};
    if (with_positions)
      from.positions = {positions.data(), known_positions};
    std::vector<float> want(embedded_tokens.size() * embedded_width);
    embed(from, embedded_tokens, want.data());
    expect_embedded_draws(want, with_positions ? positions : none);
    EXPECT_EQ((embedded<float, float>(with_positions)), want);
    EXPECT_EQ((embedded<Bf16, float>(with_positions)), want);
    const auto rounded = read_back(stored_as<Bf16>(want));
    EXPECT_EQ((embedded<float, Bf16>(with_positions)), rounded);
    EXPECT_EQ((embedded<Bf16, Bf16>(with_positions)), rounded);
  }
}

} // namespace
} // namespace troupe::models::gpu
