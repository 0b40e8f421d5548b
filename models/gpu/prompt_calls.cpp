#include "models/gpu/prompt_calls.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::models {

namespace {

bool is_of_prompt(const DecodeGroup& group) {
  return group.tokens > 1;
}

bool is_new(const DecodeGroup& group) {
  return group.keys == static_cast<std::int64_t>(group.tokens);
}

PromptCall empty_call() {
  PromptCall call;
  call.query_starts.push_back(0);
  call.key_starts.push_back(0);
  return call;
}

/// Appends a sequence, without its keys.
void append(PromptCall& call, const DecodeGroup& group) {
  const auto known = static_cast<std::ptrdiff_t>(call.rows.size());
  call.rows.resize(call.rows.size() + group.tokens);
  std::iota(call.rows.begin() + known, call.rows.end(),
            static_cast<std::int64_t>(group.first));
  call.query_starts.push_back(static_cast<std::int32_t>(call.rows.size()));
  call.key_starts.push_back(
    static_cast<std::int32_t>(call.keys() + group.keys));
  call.most_queries
    = std::max(call.most_queries, static_cast<std::int64_t>(group.tokens));
  call.most_keys = std::max(call.most_keys, group.keys);
}

void append_places(CachedPlaces& places, const DecodeGroup& group,
                   const CachePages& pages) {
  const std::int64_t page_tokens = pages.room().page_tokens;
  const auto of_slot = pages.pages(group.slot);
  for (std::int64_t key = 0; key < group.keys; ++key) {
    places.pages.push_back(
      of_slot[static_cast<std::size_t>(key / page_tokens)]);
    places.tokens.push_back(key % page_tokens);
  }
}

} // namespace

std::vector<PromptCall> prompt_calls(std::span<const DecodeGroup> groups,
                                     const CachePages& pages,
                                     std::int64_t most_copied) {
  PromptCall of_new = empty_call();
  std::vector<PromptCall> calls;
  for (const DecodeGroup& group : groups) {
    if (!is_of_prompt(group))
      continue;
    if (is_new(group)) {
      append(of_new, group);
      continue;
    }
    if (calls.empty() || calls.back().keys() + group.keys > most_copied)
      calls.push_back(empty_call());
    append(calls.back(), group);
    append_places(calls.back().cached, group, pages);
  }
  if (!of_new.rows.empty())
    calls.push_back(std::move(of_new));
  return calls;
}

} // namespace troupe::models
