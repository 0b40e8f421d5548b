#include "models/kernels/kv_cache.hpp"

#include "config/base/arithmetic.hpp"
#include "config/base/error.hpp"
#include "models/kernels/host_backend.hpp"

#include <algorithm>
#include <array>
#include <functional>

namespace troupe::models {
KvCache::KvCache(const ModelShape& shape) : KvCache(shape, host_backend()) {}

KvCache::KvCache(const ModelShape& shape, Backend& backend, DType type)
  : backend_(&backend),
    num_layers_(shape.num_layers),
    num_heads_(shape.num_kv_heads),
    head_dim_(shape.head_dim),
    value_stride_(round_up(shape.head_dim, KvCache::block)),
    slab_(backend.memory(), type) {}

std::uint64_t KvCache::slot_bytes(std::int64_t tokens) const {
  return static_cast<std::uint64_t>(
           num_layers_ * num_heads_
           * head_numbers(round_up(tokens, KvCache::block)))
         * size_bytes(type());
}

void KvCache::reset(std::int64_t num_slots, std::int64_t tokens) {
  tokens_ = std::max<std::int64_t>(tokens, 1);
  capacity_ = round_up(tokens_, KvCache::block);
  ++resets_;
  num_slots_ = num_slots;
  const std::int64_t count
    = num_layers_ * num_slots * num_heads_ * head_numbers(capacity_);
  // Kernels read whole blocks and drop what follows the last token; and padding
  // of values is added with weight 0, which NaN would survive.
  backend_->fill(slab_.reserve(count), count, 0.0F);
  free_.clear();
  for (std::int32_t slot = 0; slot < num_slots; ++slot)
    free_.push_back(slot);
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
  const std::int64_t layer = num_slots_ * num_heads_ * head_stride();
  const std::array strides{layer, head_stride(), capacity_};
  backend_->copy_box(
    {{num_layers_, num_heads_, head_dim_, tokens}, strides, strides},
    keys(0, from, 0), keys(0, to, 0));
  backend_->copy_box(
    {{num_layers_, num_heads_, 1, tokens * value_stride_}, strides, strides},
    values(0, from, 0), values(0, to, 0));
}

TypedPtr KvCache::keys(std::int64_t layer, std::int32_t slot,
                       std::int64_t head) {
  return slab_.data()
         + ((layer * num_slots_ + slot) * num_heads_ + head)
             * head_numbers(capacity_);
}

} // namespace troupe::models
