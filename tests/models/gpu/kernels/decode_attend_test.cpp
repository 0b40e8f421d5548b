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
constexpr std::int32_t num_slots = 5;
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
  cache->reset(num_slots, slot_tokens);
  for (std::int32_t slot = 0; slot < num_slots; ++slot)
    cache->make_room(cache->take_slot(), 0, slot_tokens);
  cache->begin_pass({});
  const std::int64_t count = num_slots * kv_heads * cache->head_stride();
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
  std::vector<float> all(slab,
                         slab + num_slots * kv_heads * cache->head_stride());
  all.insert(all.end(), context.begin(), context.end());
  return all;
}

constexpr std::int32_t whole_sequence = 608; ///< tokens of a page

/// The random cache in pages of a kernel, which are shuffled.
template <class T>
class PagesOfKernel {
public:
  explicit PagesOfKernel(std::int32_t page_tokens)
    : like_(random_cache()),
      page_tokens_(page_tokens),
      per_slot_(pieces_of(whole_sequence, page_tokens)) {
    const std::int64_t total = num_slots * per_slot_;
    for (std::int64_t i = 0; i < total; ++i)
      table_.push_back(static_cast<std::int32_t>(i * 7 % total));
    slab_.resize(static_cast<std::size_t>(total * kv_heads * stride()));
    visit([](float& number, T& paged) { store(&paged, number); });
  }

  PagedCache<T> cache() {
    return {slab_.data(),  slab_.data() + page_tokens_ * dim,
            table_.data(), static_cast<std::int32_t>(per_slot_),
            page_tokens_,  kv_heads,
            stride(),      like_->value_stride()};
  }
  /// Returns the numbers in the order of the CPU's cache.
  std::vector<float> read() {
    visit([](float& number, T& paged) { number = to_float(paged); });
    const float* numbers = like_->keys(0, 0, 0).floats();
    return {numbers, numbers + num_slots * kv_heads * like_->head_stride()};
  }

private:
  std::int64_t stride() const {
    return page_tokens_ * (dim + like_->value_stride());
  }
  /// Calls f with each number of the CPU's cache and of the pages.
  template <class F>
  void visit(F f) {
    for (std::int32_t slot = 0; slot < num_slots; ++slot)
      for (std::int64_t head = 0; head < kv_heads; ++head)
        for (std::int32_t t = 0; t < whole_sequence; ++t)
          visit_token(slot, head, t, f);
  }
  template <class F>
  void visit_token(std::int32_t slot, std::int64_t head, std::int32_t t, F f) {
    float* keys = like_->keys(0, slot, head).floats() + t;
    float* values
      = like_->values(0, slot, head).floats() + t * like_->value_stride();
    const PagedCache<T> pages = cache();
    for (std::int64_t d = 0; d < dim; ++d)
      f(keys[d * whole_sequence],
        pages.key(slot, t, head)[d * pages.page_tokens]);
    for (std::int64_t d = 0; d < like_->value_stride(); ++d)
      f(values[d], pages.value(slot, t, head)[d]);
  }

  std::unique_ptr<KvCache> like_;
  std::int32_t page_tokens_;
  std::int64_t per_slot_;
  std::vector<std::int32_t> table_;
  std::vector<T> slab_;
};

template <class T>
std::vector<float> by_the_kernels(const AttendCase& c, LaneOrder order,
                                  std::int32_t page_tokens = whole_sequence) {
  PagesOfKernel<T> pages(page_tokens);
  const PagedCache<T> cache = pages.cache();
  auto qkv = stored_as<T>(bf16_numbers(num_tokens * columns, 2));
  const DecodeAttention what = what_of(c);
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
  auto all = pages.read();
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

TEST(GpuDecodeAttend, HasTheSameBitsOverPagesOfAnySize) {
  const AttendCase c{true, 3, 300};
  const auto whole = by_the_kernels<float>(c, LaneOrder::forward());
  for (const std::int32_t page_tokens : {16, 256, 304})
    EXPECT_EQ(in_every_order([&](LaneOrder order) {
                return by_the_kernels<float>(c, order, page_tokens);
              }),
              whole)
      << page_tokens << " tokens of a page";
}

TEST(GpuDecodeAttend, InBf16IsNearFp32) {
  const AttendCase c{true, 3, 300};
  const auto got = in_every_order(
    [&](LaneOrder order) { return by_the_kernels<Bf16>(c, order); });
  expect_near(got, by_the_cpu(c), 2e-2F, 2e-2F);
}

TEST(GpuDecodeAttend, TakesTheRowsOfATable) {
  const auto whole = by_the_cpu({});
  PagesOfKernel<float> pages(whole_sequence);
  const PagedCache<float> slots = pages.cache();
  auto qkv = bf16_numbers(num_tokens * columns, 2);
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
