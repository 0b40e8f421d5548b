#include "models/decode_pass.hpp"

#include "config/error.hpp"

#include <algorithm>
#include <bit>

namespace troupe::models {

namespace {

std::int64_t power_of_two(std::int64_t n) {
  return static_cast<std::int64_t>(
    std::bit_ceil(static_cast<std::uint64_t>(n)));
}

} // namespace

void DecodePass::append(const DecodeRow& row) {
  if (groups_.empty() || rows_.back().slot != row.slot)
    groups_.push_back({.first = rows_.size(), .rows = 0, .slot = row.slot});
  DecodeGroup& group = groups_.back();
  ++group.rows;
  group.keys = row.position + 1;
  rows_.push_back(row);
}

void DecodePass::begin(std::span<const DecodeRow> rows) {
  rows_.clear();
  groups_.clear();
  for (const DecodeRow& row : rows)
    append(row);
}

PassShape DecodePass::round_up(const KvCache& cache) {
  std::int64_t keys = KvCache::block;
  for (const DecodeGroup& group : groups_)
    keys = std::max(keys, group.keys);
  const PassShape shape{std::min(power_of_two(num_rows()), cache.num_slots()),
                        std::min(power_of_two(keys), cache.capacity())};
  fill_up(shape.rows, cache);
  for (DecodeGroup& group : groups_)
    group.keys = shape.keys;
  return shape;
}

void DecodePass::fill_up(std::int64_t rows, const KvCache& cache) {
  has_row_.assign(static_cast<std::size_t>(cache.num_slots()), false);
  for (const DecodeRow& row : rows_) {
    TROUPE_CHECK(row.position < cache.unused_place(),
                 "a sequence's last token is not fed");
    has_row_[static_cast<std::size_t>(row.slot)] = true;
  }
  for (std::int32_t slot = 0; num_rows() < rows; ++slot)
    if (!has_row_[static_cast<std::size_t>(slot)])
      append({.token = 0, .slot = slot, .position = cache.unused_place()});
}

Recording* RecordedPasses::find(const PassShape& shape) {
  const auto found = std::ranges::find(known_, shape, &Known::first);
  if (found == known_.end())
    return nullptr;
  std::rotate(found, found + 1, known_.end());
  return known_.back().second.get();
}

void RecordedPasses::add(const PassShape& shape,
                         std::unique_ptr<Recording> recording) {
  if (known_.size() == most_)
    known_.erase(known_.begin());
  known_.emplace_back(shape, std::move(recording));
}

} // namespace troupe::models
