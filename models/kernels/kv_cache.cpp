#include "models/kernels/kv_cache.hpp"

#include "config/base/arithmetic.hpp"
#include "config/base/error.hpp"
#include "models/kernels/host_backend.hpp"

#include <algorithm>
#include <array>

namespace troupe::models {

static_assert(sizeof(std::int32_t) == sizeof(float), "tables lie in floats");

KvCache::KvCache(const ModelShape& shape) : KvCache(shape, host_backend()) {}

KvCache::KvCache(const ModelShape& shape, Backend& backend, DType type)
  : backend_(&backend),
    num_layers_(shape.num_layers),
    num_heads_(shape.num_kv_heads),
    head_dim_(shape.head_dim),
    value_stride_(round_up(shape.head_dim, KvCache::block)),
    slab_(backend.memory(), type),
    table_(backend.memory()) {}

std::uint64_t KvCache::slot_bytes(std::int64_t tokens) const {
  return static_cast<std::uint64_t>(
           num_layers_ * num_heads_
           * head_numbers(round_up(tokens, KvCache::block)))
         * size_bytes(type());
}

std::int64_t KvCache::page_tokens_for(std::int64_t tokens) const {
  return std::min(backend_->page_tokens(), round_up(tokens, KvCache::block));
}

std::int64_t KvCache::pages_in(std::uint64_t bytes, std::int64_t tokens) const {
  if (bytes < slot_bytes(tokens))
    return 0;
  const CacheRoom room{.tokens = tokens,
                       .page_tokens = page_tokens_for(tokens)};
  const auto all
    = static_cast<std::int64_t>(bytes / slot_bytes(room.page_tokens));
  return std::max(all - CachePages::spare_pages(room), room.pages_of(tokens));
}

void KvCache::reset(std::int64_t num_slots, std::int64_t tokens) {
  CacheRoom room{.slots = num_slots,
                 .tokens = std::max<std::int64_t>(tokens, 1)};
  room.page_tokens = page_tokens_for(room.tokens);
  room.pages = num_slots * room.pages_of(room.tokens);
  reset(room);
}

void KvCache::reset(const CacheRoom& room) {
  pages_ = CachePages(room);
  const std::int64_t count
    = num_layers_ * num_pages() * num_heads_ * head_stride();
  // Kernels read whole blocks and drop what follows the last token; and padding
  // of values is added with weight 0, which NaN would survive.
  backend_->fill(slab_.reserve(count), count, 0.0F);
  table_.reserve(static_cast<std::int64_t>(pages_.table().size()));
  known_.clear();
  begin_pass({});
}

bool KvCache::make_room(std::int32_t slot, std::int64_t first,
                        std::int64_t end) {
  const auto found = pages_.make_room(slot, first, end);
  if (found && found->tokens > 0)
    copy(*found);
  return found.has_value();
}

void KvCache::begin_pass(std::span<const DecodeToken> tokens) {
  for (const DecodeToken& token : tokens)
    TROUPE_CHECK(make_room(token.slot, token.position, token.position + 1),
                 "a token is fed where its sequence has room");
  const auto table = pages_.table();
  if (std::ranges::equal(known_, table))
    return;
  backend_->write(table.data(), table_.data(), table.size_bytes());
  known_.assign(table.begin(), table.end());
}

const std::int32_t* KvCache::table() const {
  return reinterpret_cast<const std::int32_t*>(table_.data());
}

void KvCache::copy(const PageCopy& copy) {
  const std::int64_t layer = num_pages() * num_heads_ * head_stride();
  const std::array strides{layer, head_stride(), page_tokens()};
  backend_->copy_box(
    {{num_layers_, num_heads_, head_dim_, copy.tokens}, strides, strides},
    keys(0, copy.from, 0), keys(0, copy.to, 0));
  backend_->copy_box({{num_layers_, num_heads_, 1, copy.tokens * value_stride_},
                      strides,
                      strides},
                     values(0, copy.from, 0), values(0, copy.to, 0));
}

TypedPtr KvCache::keys(std::int64_t layer, std::int32_t page,
                       std::int64_t head) {
  return slab_.data()
         + ((layer * num_pages() + page) * num_heads_ + head) * head_stride();
}

} // namespace troupe::models
