// Rotation and append to a paged cache, run on the host, against the CPU's
// decode kernels, token by token.
#include "models/gpu/kernels/paged_append.hpp"
#include "models/kernels/decode_kernels.hpp"
#include "models/kernels/host_backend.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"

#include <algorithm>

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::in_every_order;
using troupe::testing::read_back;
using troupe::testing::stored_as;

constexpr std::int64_t paged_heads = 6;
constexpr std::int64_t paged_kv_heads = 2;
constexpr std::int64_t paged_dim = 10; // 8 of them rotate
constexpr std::int64_t paged_columns
  = (paged_heads + 2 * paged_kv_heads) * paged_dim;
constexpr std::int64_t paged_width = paged_kv_heads * paged_dim;
constexpr float paged_scale = 0.25F;
constexpr float untouched = -7; // what the cache has elsewhere

/// A token of a slot; ragged: slots have other numbers of tokens.
struct PagedToken {
  std::int32_t slot;
  std::int32_t position;
};

// At both ends of pages, several of a slot, and padding.
const std::vector<PagedToken> paged_tokens{
  {0, 0}, {1, 255}, {1, 256}, {-1, 0}, {2, 511}, {0, 1}, {2, 767}};
constexpr std::int64_t pages_per_slot = 3;
// pages of slots 0, 1, 2: shuffled, and some that no slot has
const std::vector<std::int32_t> paged_table{7, 2, 9, 0, 4, 1, 5, 3, 8};
constexpr std::int64_t num_pages = 11;

const RopeTable& paged_rotation() {
  static const RopeTable table = [] {
    RopeTable made({1.0F, 0.3F, 0.1F, 0.01F}, 1.1F, host_backend());
    made.grow(pages_per_slot * page_tokens);
    return made;
  }();
  return table;
}

/// Rows after the call, then all pages of keys and of values.
template <class T>
std::vector<float> appended() {
  std::vector<std::int32_t> slots;
  std::vector<std::int32_t> positions;
  for (const PagedToken& token : paged_tokens) {
    slots.push_back(token.slot);
    positions.push_back(token.position);
  }
  const auto rows = std::int64_t(paged_tokens.size());
  return in_every_order([&](LaneOrder order) {
    auto qkv = stored_as<T>(bf16_numbers(rows * paged_columns, 1));
    auto keys = stored_as<T>(std::vector<float>(
      std::size_t(num_pages * page_tokens * paged_width), untouched));
    auto values = keys;
    run_on_host(PagedAppend<T>{qkv.data(),
                               {keys.data(), values.data(), paged_table.data(),
                                pages_per_slot},
                               Rotation::of(paged_rotation()),
                               slots.data(),
                               positions.data(),
                               paged_heads,
                               paged_kv_heads,
                               paged_dim,
                               paged_scale},
                PagedAppend<T>::blocks(rows), order);
    auto all = read_back(qkv);
    for (const auto& pages : {keys, values}) {
      const auto numbers = read_back(pages);
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
    return all;
  });
}

void turn_head(float* head, std::int32_t position, float scale) {
  rope_head(head, paged_rotation().cos(position),
            paged_rotation().sin(position), paged_rotation().num_frequencies(),
            paged_dim, scale);
}

std::vector<float> appended_wanted() {
  const auto rows = std::int64_t(paged_tokens.size());
  auto qkv = bf16_numbers(rows * paged_columns, 1);
  const auto cache_floats = num_pages * page_tokens * paged_width;
  std::vector<float> pages(std::size_t(2 * cache_floats), untouched);
  for (std::int64_t r = 0; r < rows; ++r) {
    const PagedToken& token = paged_tokens[std::size_t(r)];
    if (token.slot < 0)
      continue;
    float* row = qkv.data() + r * paged_columns;
    for (std::int64_t h = 0; h < paged_heads; ++h)
      turn_head(row + h * paged_dim, token.position, paged_scale);
    const float* key = row + paged_heads * paged_dim;
    const auto page = paged_table[std::size_t(token.slot * pages_per_slot
                                              + token.position / page_tokens)];
    float* to
      = pages.data()
        + (page * page_tokens + token.position % page_tokens) * paged_width;
    std::copy_n(key, paged_width, to);
    for (std::int64_t h = 0; h < paged_kv_heads; ++h)
      turn_head(to + h * paged_dim, token.position, 1);
    std::copy_n(key + paged_width, paged_width, to + cache_floats);
  }
  qkv.insert(qkv.end(), pages.begin(), pages.end());
  return qkv;
}

TEST(GpuPagedAppend, WritesTheCpusKeysAndValuesToTheSequencesPages) {
  const auto want = appended_wanted();
  EXPECT_EQ(appended<float>(), want);
  EXPECT_EQ(appended<Bf16>(), read_back(stored_as<Bf16>(want)));
}

} // namespace
} // namespace troupe::models::gpu
