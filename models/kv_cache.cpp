#include "models/kv_cache.hpp"

#include "config/error.hpp"

#include <algorithm>
#include <functional>

namespace troupe::models {
namespace {

std::int64_t kv_round_up(std::int64_t n) {
  return (n + KvCache::block - 1) / KvCache::block * KvCache::block;
}

} // namespace

KvCache::KvCache(const ModelShape& shape)
  : num_layers_(shape.num_layers),
    num_heads_(shape.num_kv_heads),
    head_dim_(shape.head_dim),
    value_stride_(kv_round_up(shape.head_dim)) {}

std::uint64_t KvCache::slot_bytes(std::int64_t tokens) const {
  return static_cast<std::uint64_t>(num_layers_ * num_heads_
                                    * head_floats(kv_round_up(tokens)))
         * sizeof(float);
}

void KvCache::reset(std::int64_t num_slots, std::int64_t tokens) {
  capacity_ = kv_round_up(std::max<std::int64_t>(tokens, 1));
  num_slots_ = num_slots;
  const std::int64_t floats
    = num_layers_ * num_slots * num_heads_ * head_floats(capacity_);
  slab_.reserve(floats);
  // Kernels read whole blocks and drop what lies behind the last token; and
  // padding of values is added with weight 0, which NaN would survive.
  std::fill_n(slab_.data(), floats, 0.0F);
  free_.clear();
  for (std::int32_t slot = 0; slot < num_slots; ++slot)
    free_.push_back(slot);
}

void KvCache::release() {
  slab_ = AlignedFloats();
  free_.clear();
  num_slots_ = 0;
}

std::int32_t KvCache::take_slot() {
  TROUPE_CHECK(!free_.empty(), "a slot is taken only where one is free");
  std::pop_heap(free_.begin(), free_.end(), std::greater<>());
  const std::int32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void KvCache::free_slot(std::int32_t slot) {
  free_.push_back(slot);
  std::push_heap(free_.begin(), free_.end(), std::greater<>());
}

void KvCache::copy_prefix(std::int32_t from, std::int32_t to,
                          std::int64_t tokens) {
  for (std::int64_t layer = 0; layer < num_layers_; ++layer)
    for (std::int64_t head = 0; head < num_heads_; ++head) {
      const float* source = keys(layer, from, head);
      float* target = keys(layer, to, head);
      for (std::int64_t d = 0; d < head_dim_; ++d)
        std::copy_n(source + d * capacity_, tokens, target + d * capacity_);
      std::copy_n(values(layer, from, head), tokens * value_stride_,
                  values(layer, to, head));
    }
}

float* KvCache::keys(std::int64_t layer, std::int32_t slot, std::int64_t head) {
  return slab_.data()
         + ((layer * num_slots_ + slot) * num_heads_ + head)
             * head_floats(capacity_);
}

} // namespace troupe::models
