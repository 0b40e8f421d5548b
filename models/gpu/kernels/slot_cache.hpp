// One layer of the KV cache in device memory, with the layout of
// models/kernels/kv_cache.hpp: per slot and head, keys [D][capacity], then
// values [capacity][value_stride].
#pragma once

#include "models/gpu/kernels/grid.hpp"

#include <cstdint>

namespace troupe::models::gpu {

template <class T>
struct SlotCache {
  T* keys = nullptr; ///< of slot 0, head 0
  T* values = nullptr;
  std::int64_t heads = 0;       ///< G
  std::int64_t head_stride = 0; ///< elements from head to head
  std::int64_t capacity = 0;    ///< tokens of a slot
  std::int64_t value_stride = 0;

  /// Returns the first key or value element of a head.
  TROUPE_KERNEL T* head_of(T* first, std::int64_t slot,
                           std::int64_t head) const {
    return first + (slot * heads + head) * head_stride;
  }
};

} // namespace troupe::models::gpu
