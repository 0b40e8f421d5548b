// Keys and values of the sequences under way, in one slab of equal slots: a
// finished sequence's slot is handed to the next prompt as it is. Layout a
// (layer, slot, head): keys [D][capacity], so that scores of neighbouring
// tokens are neighbours, then values [capacity][D padded to 16].
//
// D head dim; capacity: tokens a slot holds.
#pragma once

#include "config/model_shape.hpp"
#include "models/aligned_floats.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models {

class Compute;

class KvCache {
public:
  /// Floats a vector register block of the kernels spans.
  static constexpr std::int64_t block = 16;

  /// In the host's memory.
  explicit KvCache(const ModelShape& shape);
  KvCache(const ModelShape& shape, Compute& compute);

  /// Bytes of a slot that holds `tokens`.
  std::uint64_t slot_bytes(std::int64_t tokens) const;
  /// Makes room for `num_slots` sequences of up to `tokens`; all are free
  /// afterwards. Keeps its memory where it is large enough.
  void reset(std::int64_t num_slots, std::int64_t tokens);

  /// The free slot with the lowest number.
  std::int32_t take_slot();
  void free_slot(std::int32_t slot);
  /// The first `tokens` keys and values of every layer, from slot to slot.
  void copy_prefix(std::int32_t from, std::int32_t to, std::int64_t tokens);

  std::int64_t capacity() const {
    return capacity_;
  }
  /// A slot's place that no token has: the last one of a sequence as long as a
  /// slot is drawn and not fed.
  std::int32_t unused_place() const {
    return static_cast<std::int32_t>(tokens_ - 1);
  }
  /// How often it was made anew.
  std::uint64_t resets() const {
    return resets_;
  }
  /// Floats from one head of a layer and slot to the next; heads of a slot and
  /// slots of a layer are neighbours.
  std::int64_t head_stride() const {
    return head_floats(capacity_);
  }
  std::int64_t num_slots() const {
    return num_slots_;
  }
  std::int64_t value_stride() const {
    return value_stride_;
  }
  float* keys(std::int64_t layer, std::int32_t slot, std::int64_t head);
  float* values(std::int64_t layer, std::int32_t slot, std::int64_t head) {
    return keys(layer, slot, head) + head_dim_ * capacity_;
  }

private:
  std::int64_t head_floats(std::int64_t capacity) const {
    return capacity * (head_dim_ + value_stride_);
  }

  Compute* compute_;
  std::int64_t num_layers_;
  std::int64_t num_heads_;
  std::int64_t head_dim_;
  std::int64_t value_stride_;
  std::int64_t tokens_ = 0; ///< that a slot was asked to hold
  std::int64_t capacity_ = 0;
  std::int64_t num_slots_ = 0;
  std::uint64_t resets_ = 0;
  std::vector<std::int32_t> free_; ///< a heap, the lowest first
  AlignedFloats slab_;
};

} // namespace troupe::models
