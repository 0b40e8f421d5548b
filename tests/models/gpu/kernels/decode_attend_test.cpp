// Attention of generation of GPU kernels, run on the host, against the CPU's:
// what it writes to the cache, and what it finds there.
#include "models/gpu/kernels/decode_append.hpp"
#include "models/gpu/kernels/decode_attend.hpp"
#include "models/kernels/decode_attention.hpp"
#include "models/kernels/host_backend.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"

#include <algorithm>
#include <memory>

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::expect_near;
using troupe::testing::in_every_order;
using troupe::testing::read_back;
using troupe::testing::stored_as;

constexpr std::int64_t heads = 6;
constexpr std::int64_t kv_heads = 2;
constexpr std::int64_t dim = 10; // 8 of them rotate
constexpr std::int64_t columns = (heads + 2 * kv_heads) * dim;
constexpr std::int64_t slot_tokens = 600; // three chunks of keys

// The first and the last of a chunk, one after it, and none of slot 2.
const std::vector<DecodeToken> pass_tokens{
  {0, 0, 0}, {0, 1, 255}, {0, 3, 256}, {0, 4, 590}};
const auto num_tokens = static_cast<std::int64_t>(pass_tokens.size());

const RopeTable& rotation_table() {
  static const RopeTable table = [] {
    RopeTable made({1.0F, 0.3F, 0.1F, 0.01F}, 1.1F, host_backend());
    made.grow(slot_tokens);
    return made;
  }();
  return table;
}

struct AttendCase {
  bool norms = false;
  float cap = 0;
  std::int64_t window = 0;
};

const std::vector<float>& qk_weight() {
  static const auto numbers = bf16_numbers(dim, 3);
  return numbers;
}

DecodeAttention what_of(const AttendCase& c) {
  DecodeAttention what{0, heads, kv_heads, dim};
  what.scale = 0.25F;
  what.cap = c.cap;
  what.window = c.window;
  what.norm_eps = 1e-5F;
  what.q_norm_D = c.norms ? qk_weight().data() : nullptr;
  what.k_norm_D = what.q_norm_D;
  what.rope = &rotation_table();
  return what;
}

std::unique_ptr<KvCache> random_cache() {
  ModelShape shape;
  shape.num_layers = 1;
  shape.num_kv_heads = kv_heads;
  shape.head_dim = dim;
  auto cache = std::make_unique<KvCache>(shape);
  cache->reset(5, slot_tokens);
  const std::int64_t count = 5 * kv_heads * cache->head_stride();
  const auto numbers = bf16_numbers(count, 1);
  std::copy(numbers.begin(), numbers.end(), cache->keys(0, 0, 0).floats());
  return cache;
}

/// Returns the whole cache, then the context.
std::vector<float> by_the_cpu(const AttendCase& c) {
  const auto cache = random_cache();
  auto qkv = bf16_numbers(num_tokens * columns, 2);
  std::vector<float> context(
    static_cast<std::size_t>(num_tokens * heads * dim));
  std::vector<DecodeGroup> groups;
  for (std::size_t i = 0; i < pass_tokens.size(); ++i)
    groups.push_back({i, 1, pass_tokens[i].slot, pass_tokens[i].position + 1});
  decode_attention(what_of(c), {pass_tokens, groups}, *cache, qkv.data(),
                   context.data());
  const float* slab = cache->keys(0, 0, 0).floats();
  std::vector<float> all(slab, slab + 5 * kv_heads * cache->head_stride());
  all.insert(all.end(), context.begin(), context.end());
  return all;
}

template <class T>
std::vector<float> by_the_kernels(const AttendCase& c, LaneOrder order) {
  const auto like = random_cache();
  const float* numbers = like->keys(0, 0, 0).floats();
  auto slab
    = stored_as<T>({numbers, numbers + 5 * kv_heads * like->head_stride()});
  auto qkv = stored_as<T>(bf16_numbers(num_tokens * columns, 2));
  const DecodeAttention what = what_of(c);
  const SlotCache<T> cache{
    slab.data(),      slab.data() + dim * like->capacity(),
    kv_heads,         like->head_stride(),
    like->capacity(), like->value_stride()};
  const DecodeAppend<T> append{qkv.data(),
                               pass_tokens.data(),
                               cache,
                               Rotation::of(rotation_table()),
                               {what.q_norm_D, what.k_norm_D, what.norm_eps},
                               heads,
                               dim};
  run_on_host(append, append.blocks(num_tokens), order);
  const std::int64_t chunks = pieces_of(slot_tokens, DecodeAttend<T>::chunk);
  const AttendShape shape{heads, dim, chunks, c.window, what.scale, c.cap};
  const auto parts = static_cast<std::size_t>(num_tokens * heads * chunks);
  std::vector<ChunkSoftmax> softmax(parts);
  std::vector<float> partial(parts * dim);
  const DecodeAttend<T> attend{
    shape,   cache,          qkv.data(),    pass_tokens.data(),
    nullptr, softmax.data(), partial.data()};
  run_on_host(attend, attend.blocks(num_tokens), order);
  std::vector<T> context(static_cast<std::size_t>(num_tokens * heads * dim));
  const JoinAttention<T> join{shape, softmax.data(), partial.data(), nullptr,
                              context.data()};
  run_on_host(join, join.blocks(num_tokens), order);
  auto all = read_back(slab);
  const auto found = read_back(context);
  all.insert(all.end(), found.begin(), found.end());
  return all;
}

TEST(GpuDecodeAttend, EqualsTheCpusOverItsCache) {
  for (const AttendCase& c :
       {AttendCase{}, AttendCase{true, 0, 0}, AttendCase{true, 3, 0},
        AttendCase{false, 0, 40}, AttendCase{false, 3, 300}})
    expect_near(in_every_order([&](LaneOrder order) {
                  return by_the_kernels<float>(c, order);
                }),
                by_the_cpu(c), 1e-4F, 2e-5F);
}

TEST(GpuDecodeAttend, InBf16IsNearFp32) {
  const AttendCase c{true, 3, 300};
  const auto got = in_every_order(
    [&](LaneOrder order) { return by_the_kernels<Bf16>(c, order); });
  expect_near(got, by_the_cpu(c), 2e-2F, 2e-2F);
}

TEST(GpuDecodeAttend, TakesTheRowsOfATable) {
  const auto whole = by_the_cpu({});
  const auto cache = random_cache();
  auto qkv = bf16_numbers(num_tokens * columns, 2);
  float* keys = cache->keys(0, 0, 0).floats();
  const SlotCache<float> slots{keys,
                               keys + dim * cache->capacity(),
                               kv_heads,
                               cache->head_stride(),
                               cache->capacity(),
                               cache->value_stride()};
  const DecodeAppend<float> append{qkv.data(), pass_tokens.data(),
                                   slots,      Rotation::of(rotation_table()),
                                   {},         heads,
                                   dim};
  run_on_host(append, append.blocks(num_tokens));
  const std::vector<std::int64_t> rows{3, 1};
  const AttendShape shape{heads, dim, 3, 0, 0.25F, 0};
  std::vector<ChunkSoftmax> softmax(2 * heads * 3);
  std::vector<float> partial(softmax.size() * dim);
  const DecodeAttend<float> attend{
    shape,       slots,          qkv.data(),    pass_tokens.data(),
    rows.data(), softmax.data(), partial.data()};
  run_on_host(attend, attend.blocks(2));
  std::vector<float> context(static_cast<std::size_t>(num_tokens * heads * dim),
                             -7);
  const JoinAttention<float> join{shape, softmax.data(), partial.data(),
                                  rows.data(), context.data()};
  run_on_host(join, join.blocks(2));
  const float* wanted = whole.data() + whole.size() - context.size();
  for (std::size_t row = 0; row < pass_tokens.size(); ++row)
    for (std::int64_t i = 0; i < heads * dim; ++i) {
      const auto at = row * heads * dim + static_cast<std::size_t>(i);
      if (row == 1 || row == 3)
        ASSERT_NEAR(context[at], wanted[at], 1e-4);
      else
        ASSERT_EQ(context[at], -7) << "row " << row << " is not in the table";
    }
}

} // namespace
} // namespace troupe::models::gpu
