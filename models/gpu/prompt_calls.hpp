// The prompts of a pass of generation as calls of fused attention
// (flash_attention.hpp). Prompts of which nothing was cached attend to the keys
// that the pass computed, all in one call. Those that continue what is cached
// (turns of a conversation, chunks of a prompt, samples that share one) attend
// to copies of it, so a call has no more of them than fit a bounded buffer, or
// a single one that does not. Pure: aten_prompts.hpp makes the calls.
//
// The kernel aligns the last query of a sequence with its last key, which is
// where the tokens of a pass are.
//
// Q queries, K keys, N sequences of a call.
#pragma once

#include "models/kernels/cache_pages.hpp"
#include "models/kernels/decode_attention.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::models {

/// The places of tokens in the cache.
struct CachedPlaces {
  std::vector<std::int64_t> pages;
  std::vector<std::int64_t> tokens; ///< of the page
};

struct PromptCall {
  std::vector<std::int64_t> rows;         ///< [Q] of the pass
  std::vector<std::int32_t> query_starts; ///< [N+1] offsets into Q
  std::vector<std::int32_t> key_starts;   ///< [N+1] offsets into K
  CachedPlaces cached;           ///< [K]; empty: the keys are those of the rows
  std::int64_t most_queries = 0; ///< of a sequence
  std::int64_t most_keys = 0;

  std::int64_t keys() const {
    return key_starts.back();
  }
  bool copies_keys() const {
    return !cached.pages.empty();
  }
  /// Returns true if the rows are adjacent.
  bool is_range() const {
    return rows.back() - rows.front() + 1
           == static_cast<std::int64_t>(rows.size());
  }
};

/// Returns the calls for all groups of several tokens; none copies more than
/// `most_copied` keys of several sequences.
std::vector<PromptCall> prompt_calls(std::span<const DecodeGroup> groups,
                                     const CachePages& pages,
                                     std::int64_t most_copied);

} // namespace troupe::models
