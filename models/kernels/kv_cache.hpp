// Keys and values of the running sequences, in one slab of pages
// (cache_pages.hpp): the backend says how many tokens a page has, and a table
// in the device's memory says which pages a sequence has. Our host kernels take
// pages of whole sequences. Layout per (layer, page, head): keys
// [D][page_tokens], so that scores of adjacent tokens are adjacent, then values
// [page_tokens][D padded to 16].
//
// D head dim.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/kernels/cache_pages.hpp"
#include "models/kernels/decode_token.hpp"
#include "models/kernels/typed_block.hpp"

#include <cstdint>
#include <span>
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

  // -- memory --
  /// Returns the bytes of `tokens` of a sequence.
  std::uint64_t slot_bytes(std::int64_t tokens) const;
  /// Returns the tokens of a page if a sequence has up to `tokens`.
  std::int64_t page_tokens_for(std::int64_t tokens) const;
  /// Returns the pages that fit `bytes` if a sequence has up to `tokens`: those
  /// of one sequence wherever its tokens fit, and else 0.
  std::int64_t pages_in(std::uint64_t bytes, std::int64_t tokens) const;
  /// Makes this room; all slots are free afterwards. Keeps its memory if it is
  /// large enough.
  void reset(const CacheRoom& room);
  /// Makes room for `num_slots` sequences of up to `tokens` at once.
  void reset(std::int64_t num_slots, std::int64_t tokens);

  // -- sequences --
  std::int32_t take_slot(std::int64_t pool = 0) {
    return pages_.take_slot(pool);
  }
  void free_slot(std::int32_t slot) {
    pages_.free_slot(slot);
  }
  /// Gives `to` the first `tokens` keys and values of `from`.
  void share_prefix(std::int32_t from, std::int32_t to, std::int64_t tokens) {
    pages_.share(from, to, tokens);
  }
  /// Makes room for tokens [first, end) of a sequence that has those before.
  /// Returns false, and changes nothing, if pages run out.
  bool make_room(std::int32_t slot, std::int64_t first, std::int64_t end);
  /// Makes the tokens' places known to the device, and first makes room for
  /// those that have none, which must be there.
  void begin_pass(std::span<const DecodeToken> tokens);

  const CachePages& pages() const {
    return pages_;
  }
  const CacheRoom& room() const {
    return pages_.room();
  }

  // -- kernels --
  /// Returns the most tokens that a slot has places for.
  std::int64_t capacity() const {
    return pages_per_slot() * page_tokens();
  }
  /// Returns a position in a slot that no cached token has: the last token of a
  /// sequence that fills its slot is sampled but never fed.
  std::int32_t unused_place() const {
    return static_cast<std::int32_t>(room().tokens - 1);
  }
  std::int64_t num_slots() const {
    return room().slots;
  }
  std::int64_t page_tokens() const {
    return room().page_tokens;
  }
  std::int64_t pages_per_slot() const {
    return pages_.pages_per_slot();
  }
  /// Returns the number of pages in memory.
  std::int64_t num_pages() const {
    return room().pages + CachePages::spare_pages(room());
  }
  /// Returns the pages of slots [slots, pages_per_slot], on the device; at the
  /// same address until the next reset.
  const std::int32_t* table() const;
  /// Returns the numbers from one head of a layer and page to the next; heads
  /// of a page and pages of a layer are adjacent.
  std::int64_t head_stride() const {
    return head_numbers(page_tokens());
  }
  std::int64_t value_stride() const {
    return value_stride_;
  }
  DType type() const {
    return slab_.type();
  }
  TypedPtr keys(std::int64_t layer, std::int32_t page, std::int64_t head);
  TypedPtr values(std::int64_t layer, std::int32_t page, std::int64_t head) {
    return keys(layer, page, head) + head_dim_ * page_tokens();
  }

private:
  std::int64_t head_numbers(std::int64_t tokens) const {
    return tokens * (head_dim_ + value_stride_);
  }
  void copy(const PageCopy& copy);

  Backend* backend_;
  std::int64_t num_layers_;
  std::int64_t num_heads_;
  std::int64_t head_dim_;
  std::int64_t value_stride_;
  CachePages pages_;
  std::vector<std::int32_t> known_; ///< the device's table
  TypedBlock slab_;
  AlignedFloats table_; ///< of integers
};

} // namespace troupe::models
