// Keys and values of the running sequences, in one slab of equal slots: a
// finished sequence's slot is reused as is for the next prompt. Layout per
// (layer, slot, head): keys [D][capacity], so that scores of adjacent tokens
// are adjacent, then values [capacity][D padded to 16].
//
// D head dim; capacity: tokens that a slot holds.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/kernels/typed_block.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models {

class Backend;

class KvCache {
public:
  /// Floats that a vector register block of the kernels spans.
  static constexpr std::int64_t block = 16;

  /// Allocates in the host's memory.
  explicit KvCache(const ModelShape& shape);
  /// Allocates numbers of a type in the backend's memory.
  KvCache(const ModelShape& shape, Backend& backend, DType type = DType::f32);

  /// Returns the bytes of a slot that holds `tokens`.
  std::uint64_t slot_bytes(std::int64_t tokens) const;
  /// Makes room for `num_slots` sequences of up to `tokens`; all slots are free
  /// afterwards. Keeps its memory if it is large enough.
  void reset(std::int64_t num_slots, std::int64_t tokens);

  /// Takes and returns the free slot with the lowest number.
  std::int32_t take_slot();
  void free_slot(std::int32_t slot);
  /// Copies the first `tokens` keys and values of every layer from slot to
  /// slot.
  void copy_prefix(std::int32_t from, std::int32_t to, std::int64_t tokens);

  std::int64_t capacity() const {
    return capacity_;
  }
  /// Returns a position in a slot that no cached token has: the last token of a
  /// sequence that fills its slot is sampled but never fed.
  std::int32_t unused_place() const {
    return static_cast<std::int32_t>(tokens_ - 1);
  }
  /// Returns how often the cache was reset.
  std::uint64_t resets() const {
    return resets_;
  }
  /// Returns the numbers from one head of a layer and slot to the next; heads
  /// of a slot and slots of a layer are adjacent.
  std::int64_t head_stride() const {
    return head_numbers(capacity_);
  }
  std::int64_t num_slots() const {
    return num_slots_;
  }
  std::int64_t value_stride() const {
    return value_stride_;
  }
  DType type() const {
    return slab_.type();
  }
  TypedPtr keys(std::int64_t layer, std::int32_t slot, std::int64_t head);
  TypedPtr values(std::int64_t layer, std::int32_t slot, std::int64_t head) {
    return keys(layer, slot, head) + head_dim_ * capacity_;
  }

private:
  std::int64_t head_numbers(std::int64_t capacity) const {
    return capacity * (head_dim_ + value_stride_);
  }

  Backend* backend_;
  std::int64_t num_layers_;
  std::int64_t num_heads_;
  std::int64_t head_dim_;
  std::int64_t value_stride_;
  std::int64_t tokens_ = 0; ///< tokens that a slot was asked to hold
  std::int64_t capacity_ = 0;
  std::int64_t num_slots_ = 0;
  std::uint64_t resets_ = 0;
  std::vector<std::int32_t> free_; ///< a min-heap
  TypedBlock slab_;
};

} // namespace troupe::models
