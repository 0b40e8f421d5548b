// Bookkeeping of the KV cache: pages of equally many tokens, listed per slot.
// Sequences of one prefix share its pages, and who writes to a shared page gets
// one of its own. Pure: kv_cache.hpp has the memory. A cache of whole sequences
// is one whose pages are as long as the longest of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <vector>

namespace troupe::models {

/// The room of a cache.
struct CacheRoom {
  std::int64_t slots = 0;  ///< sequences at once
  std::int64_t tokens = 1; ///< most of a sequence
  std::int64_t page_tokens = 1;
  std::int64_t pages = 0;
  std::int64_t pools = 1; ///< that have slots and pages of their own: the
                          ///< micro-groups of a pipeline, whose sequences end
                          ///< in another order on other stages

  std::int64_t pages_of(std::int64_t of_tokens) const {
    return (of_tokens + page_tokens - 1) / page_tokens;
  }
  bool operator==(const CacheRoom&) const = default;
};

/// Returns the room for up to `sequences` at once in as many pools as possible,
/// at most `stages`, and at most `fitting` pages: enough for one sequence of
/// each pool to grow to `tokens`.
CacheRoom cache_room(std::int64_t sequences, std::int64_t stages,
                     std::int64_t fitting, std::int64_t tokens,
                     std::int64_t page_tokens);

/// Content that a page takes over from another.
struct PageCopy {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int64_t tokens = 0; ///< the first ones of the page; 0: nothing to copy

  bool operator==(const PageCopy&) const = default;
};

class CachePages {
public:
  CachePages() = default;
  explicit CachePages(const CacheRoom& room);

  const CacheRoom& room() const {
    return room_;
  }
  /// Returns 1 if slots need a page that nobody reads where they have none of
  /// their own: rows that fill up a pass write to the last place of a slot.
  static std::int64_t spare_pages(const CacheRoom& room) {
    return room.page_tokens < room.tokens ? 1 : 0;
  }
  std::int64_t slots_of(std::int64_t pool) const {
    return part_of(room_.slots, pool);
  }

  /// Takes and returns the free slot with the lowest number.
  std::int32_t take_slot(std::int64_t pool = 0);
  /// Frees the slot and those of its pages that no other has.
  void free_slot(std::int32_t slot);
  /// Gives `to` the pages of the first tokens of `from`, and no other.
  void share(std::int32_t from, std::int32_t to, std::int64_t tokens);
  /// Gives the slot pages of its own for tokens [first, end). Returns the copy
  /// of what the first one had before `first`; nullopt, and no change, if pages
  /// run out.
  std::optional<PageCopy> make_room(std::int32_t slot, std::int64_t first,
                                    std::int64_t end);

  /// Returns the pages that this would take.
  std::int64_t missing_pages(std::int32_t slot, std::int64_t first,
                             std::int64_t end) const;
  std::int64_t free_pages(std::int64_t pool = 0) const;
  /// Returns the pages of a slot, in order.
  std::span<const std::int32_t> pages(std::int32_t slot) const {
    return pages_.at(static_cast<std::size_t>(slot));
  }
  /// Returns the page of tokens [i, i + 1) * page_tokens of each slot, [slots,
  /// pages_per_slot].
  std::span<const std::int32_t> table() const {
    return table_;
  }
  std::int64_t pages_per_slot() const {
    return room_.pages_of(room_.tokens);
  }

private:
  using Lowest = std::priority_queue<std::int32_t, std::vector<std::int32_t>,
                                     std::greater<>>;
  struct Pool {
    Lowest slots;
    Lowest pages;
  };

  std::int64_t part_of(std::int64_t all, std::int64_t pool) const {
    return all / room_.pools + (pool < all % room_.pools ? 1 : 0);
  }
  Pool& pool_of_slot(std::int32_t slot);
  /// Returns whether page i of a slot is there and no other slot's.
  bool is_own(std::int32_t slot, std::size_t i) const;
  std::int32_t take_page(Pool& pool);
  void drop(Pool& pool, std::int32_t page);
  void set(std::int32_t slot, std::size_t at, std::int32_t page);
  /// Returns the table's entry where a slot has no page.
  std::int32_t no_page() const;

  CacheRoom room_;
  std::vector<Pool> pools_;
  std::vector<std::size_t> pool_of_slot_;
  std::vector<std::vector<std::int32_t>> pages_; ///< by slot
  std::vector<std::int32_t> users_;              ///< slots that have the page
  std::vector<std::int32_t> table_;
};

} // namespace troupe::models
