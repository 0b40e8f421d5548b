#include "models/kernels/cache_pages.hpp"

#include "config/base/error.hpp"

#include <algorithm>

namespace troupe::models {

CacheRoom cache_room(std::int64_t sequences, std::int64_t stages,
                     std::int64_t fitting, std::int64_t tokens,
                     std::int64_t page_tokens) {
  CacheRoom room{.tokens = tokens, .page_tokens = page_tokens};
  const std::int64_t whole = room.pages_of(tokens);
  room.slots = std::min(sequences, fitting);
  room.pages = std::min(fitting, room.slots * whole);
  room.pools = std::min({stages, room.slots, room.pages / whole});
  return room;
}

CachePages::CachePages(const CacheRoom& room)
  : room_(room),
    pools_(static_cast<std::size_t>(room.pools)),
    pages_(static_cast<std::size_t>(room.slots)),
    users_(static_cast<std::size_t>(room.pages)),
    table_(static_cast<std::size_t>(room.slots * pages_per_slot()), no_page()) {
  std::int32_t slot = 0;
  std::int32_t page = 0;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    const auto pool = static_cast<std::int64_t>(i);
    for (std::int64_t n = part_of(room.slots, pool); n > 0; --n) {
      pools_[i].slots.push(slot++);
      pool_of_slot_.push_back(i);
    }
    for (std::int64_t n = part_of(room.pages, pool); n > 0; --n)
      pools_[i].pages.push(page++);
  }
}

std::int32_t CachePages::no_page() const {
  return spare_pages(room_) > 0 ? static_cast<std::int32_t>(room_.pages) : 0;
}

CachePages::Pool& CachePages::pool_of_slot(std::int32_t slot) {
  return pools_[pool_of_slot_.at(static_cast<std::size_t>(slot))];
}

std::int32_t CachePages::take_slot(std::int64_t pool) {
  Lowest& free = pools_.at(static_cast<std::size_t>(pool)).slots;
  TROUPE_CHECK(!free.empty(), "a slot is taken only where one is free");
  const std::int32_t slot = free.top();
  free.pop();
  return slot;
}

void CachePages::free_slot(std::int32_t slot) {
  share(slot, slot, 0);
  pool_of_slot(slot).slots.push(slot);
}

void CachePages::share(std::int32_t from, std::int32_t to,
                       std::int64_t tokens) {
  Pool& pool = pool_of_slot(to);
  TROUPE_CHECK(&pool == &pool_of_slot(from), "a pool has its own pages");
  const auto prefix
    = pages(from).first(static_cast<std::size_t>(room_.pages_of(tokens)));
  for (const std::int32_t page : prefix)
    ++users_[static_cast<std::size_t>(page)];
  const std::vector<std::int32_t> now(prefix.begin(), prefix.end());
  auto& own = pages_[static_cast<std::size_t>(to)];
  for (const std::int32_t page : own)
    drop(pool, page);
  for (std::size_t i = 0; i < std::max(own.size(), now.size()); ++i)
    set(to, i, i < now.size() ? now[i] : no_page());
  own = now;
}

bool CachePages::is_own(std::int32_t slot, std::size_t i) const {
  const auto own = pages(slot);
  return i < own.size() && users_[static_cast<std::size_t>(own[i])] == 1;
}

std::int64_t CachePages::missing_pages(std::int32_t slot, std::int64_t first,
                                       std::int64_t end) const {
  std::int64_t missing = 0;
  for (std::int64_t i = first / room_.page_tokens; i < room_.pages_of(end); ++i)
    missing += is_own(slot, static_cast<std::size_t>(i)) ? 0 : 1;
  return missing;
}

std::optional<PageCopy>
CachePages::make_room(std::int32_t slot, std::int64_t first, std::int64_t end) {
  Pool& pool = pool_of_slot(slot);
  auto& own = pages_[static_cast<std::size_t>(slot)];
  const auto begin = static_cast<std::size_t>(first / room_.page_tokens);
  const auto behind = static_cast<std::size_t>(room_.pages_of(end));
  TROUPE_CHECK(end <= room_.tokens
                 && room_.pages_of(first)
                      <= static_cast<std::int64_t>(own.size()),
               "a sequence grows without gaps, up to its limit");
  if (missing_pages(slot, first, end) > std::ssize(pool.pages))
    return std::nullopt;
  PageCopy copy;
  for (std::size_t i = begin; i < behind; ++i) {
    if (is_own(slot, i))
      continue;
    const std::int32_t page = take_page(pool);
    set(slot, i, page);
    if (i == own.size()) {
      own.push_back(page);
      continue;
    }
    if (i == begin && first % room_.page_tokens > 0)
      copy = {own[i], page, first % room_.page_tokens};
    drop(pool, own[i]);
    own[i] = page;
  }
  return copy;
}

std::int64_t CachePages::free_pages(std::int64_t pool) const {
  return static_cast<std::int64_t>(
    pools_.at(static_cast<std::size_t>(pool)).pages.size());
}

std::int32_t CachePages::take_page(Pool& pool) {
  const std::int32_t page = pool.pages.top();
  pool.pages.pop();
  users_[static_cast<std::size_t>(page)] = 1;
  return page;
}

void CachePages::drop(Pool& pool, std::int32_t page) {
  if (--users_[static_cast<std::size_t>(page)] == 0)
    pool.pages.push(page);
}

void CachePages::set(std::int32_t slot, std::size_t at, std::int32_t page) {
  table_[static_cast<std::size_t>(slot * pages_per_slot()) + at] = page;
}

} // namespace troupe::models
