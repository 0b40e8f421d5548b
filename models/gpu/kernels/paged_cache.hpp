// One layer of the KV cache in device memory, with the layout of
// models/kernels/kv_cache.hpp: per page and head, keys [D][page_tokens], then
// values [page_tokens][value_stride].
#pragma once

#include "models/gpu/kernels/grid.hpp"

#include <cstdint>

namespace troupe::models::gpu {

template <class T>
struct PagedCache {
  T* keys = nullptr; ///< of page 0, head 0
  T* values = nullptr;
  const std::int32_t* table = nullptr; ///< [slots, pages_per_slot]
  std::int32_t pages_per_slot = 0;
  std::int32_t page_tokens = 0;
  std::int64_t heads = 0;       ///< G
  std::int64_t head_stride = 0; ///< elements from head to head
  std::int64_t value_stride = 0;

  /// Returns the first element of a head's keys or values in the page that has
  /// a position of a slot.
  TROUPE_KERNEL T* page_of(T* first, std::int32_t slot, std::int32_t position,
                           std::int64_t head) const {
    const std::int64_t entry
      = std::int64_t{slot} * pages_per_slot + position / page_tokens;
    return first + (table[entry] * heads + head) * head_stride;
  }
  /// Returns the first element of a key, whose elements are `page_tokens`
  /// apart.
  TROUPE_KERNEL T* key(std::int32_t slot, std::int32_t position,
                       std::int64_t head) const {
    return page_of(keys, slot, position, head) + position % page_tokens;
  }
  TROUPE_KERNEL T* value(std::int32_t slot, std::int32_t position,
                         std::int64_t head) const {
    return page_of(values, slot, position, head)
           + position % page_tokens * value_stride;
  }
};

} // namespace troupe::models::gpu
