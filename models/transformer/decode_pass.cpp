#include "models/transformer/decode_pass.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <bit>

namespace troupe::models {

namespace {

std::int64_t power_of_two(std::int64_t n) {
  return static_cast<std::int64_t>(
    std::bit_ceil(static_cast<std::uint64_t>(n)));
}

} // namespace

void DecodePass::append(const DecodeToken& token) {
  if (groups_.empty() || tokens_.back().slot != token.slot)
    groups_.push_back(
      {.first = tokens_.size(), .tokens = 0, .slot = token.slot});
  DecodeGroup& group = groups_.back();
  ++group.tokens;
  group.keys = token.position + 1;
  tokens_.push_back(token);
}

void DecodePass::begin(std::span<const DecodeToken> tokens) {
  tokens_.clear();
  groups_.clear();
  for (const DecodeToken& token : tokens)
    append(token);
}

PassShape DecodePass::round_up(const KvCache& cache) {
  std::int64_t keys = KvCache::block;
  for (const DecodeGroup& group : groups_)
    keys = std::max(keys, group.keys);
  const PassShape shape{std::min(power_of_two(num_tokens()), cache.num_slots()),
                        std::min(power_of_two(keys), cache.capacity())};
  fill_up(shape.tokens, cache);
  for (DecodeGroup& group : groups_)
    group.keys = shape.keys;
  return shape;
}

void DecodePass::fill_up(std::int64_t count, const KvCache& cache) {
  has_token_.assign(static_cast<std::size_t>(cache.num_slots()), false);
  for (const DecodeToken& token : tokens_) {
    TROUPE_CHECK(token.position < cache.unused_place(),
                 "a sequence's last token is not fed");
    has_token_[static_cast<std::size_t>(token.slot)] = true;
  }
  for (std::int32_t slot = 0; num_tokens() < count; ++slot)
    if (!has_token_[static_cast<std::size_t>(slot)])
      append({.id = 0, .slot = slot, .position = cache.unused_place()});
}

GraphCapture* RecordedPasses::find(const PassShape& shape) {
  const auto found = std::ranges::find(known_, shape, &Known::first);
  if (found == known_.end())
    return nullptr;
  std::rotate(found, found + 1, known_.end());
  return known_.back().second.get();
}

void RecordedPasses::add(const PassShape& shape,
                         std::unique_ptr<GraphCapture> graph) {
  if (known_.size() == most_)
    known_.erase(known_.begin());
  known_.emplace_back(shape, std::move(graph));
}

} // namespace troupe::models
