// N samples.
#include "net/data_plane/stash.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

namespace troupe::net {

namespace stash_internal {

/// One column as it was stored, with an index to find a sample fast.
struct StashBlock {
  std::shared_ptr<const std::vector<SampleId>> samples;
  Column column;
  std::vector<std::uint64_t> offsets; ///< [N + 1] elements
};

struct StashPlace {
  const StashBlock* block = nullptr;
  std::size_t index = 0; ///< index of the sample in its block
};

struct StashKey {
  std::vector<std::unique_ptr<StashBlock>> blocks;
  std::unordered_map<SampleId, StashPlace> places;
};

using StashStep = std::map<std::string, StashKey, std::less<>>;

} // namespace stash_internal

namespace {

using stash_internal::StashBlock;
using stash_internal::StashKey;
using stash_internal::StashPlace;
using stash_internal::StashStep;

std::string row_text(StepId step, std::string_view key, SampleId sample) {
  return "step " + to_string(step) + ", key '" + std::string(key) + "', sample "
         + to_string(sample);
}

void append_piece(std::vector<Piece>& pieces, const Column& column,
                  std::uint64_t first, std::uint64_t elements) {
  if (elements == 0)
    return;
  const std::size_t width = size_bytes(column.dtype);
  Buffer part = column.data.slice(first * width, elements * width);
  if (!pieces.empty()) {
    Buffer& last = pieces.back().data;
    const bool same_memory = last.owner() == part.owner();
    if (same_memory && last.data() + last.size_bytes() == part.data()) {
      last = Buffer(last.owner(), last.data(),
                    last.size_bytes() + part.size_bytes());
      return;
    }
  }
  pieces.push_back({std::move(part)});
}

} // namespace

struct Stash::State {
  mutable std::mutex mutex;
  std::map<StepId, StashStep> steps;

  /// Requires the mutex to be held.
  const StashKey& key_of(StepId step, const std::string& key) const;
  static StashPlace place_of(const StashKey& rows, StepId step,
                             const std::string& key, SampleId sample);
};

const StashKey& Stash::State::key_of(StepId step,
                                     const std::string& key) const {
  static const StashKey nothing;
  auto rows = steps.find(step);
  if (rows == steps.end())
    return nothing;
  auto found = rows->second.find(key);
  return found == rows->second.end() ? nothing : found->second;
}

StashPlace Stash::State::place_of(const StashKey& rows, StepId step,
                                  const std::string& key, SampleId sample) {
  auto found = rows.places.find(sample);
  TROUPE_CHECK(found != rows.places.end(),
               row_text(step, key, sample) + " is not in this stash");
  return found->second;
}

Stash::Stash() : state_(std::make_unique<State>()) {}
Stash::~Stash() = default;

void Stash::put(StepId step, Rows rows) {
  validate(rows);
  auto samples
    = std::make_shared<const std::vector<SampleId>>(std::move(rows.samples));
  std::lock_guard lock(state_->mutex);
  StashStep& keys = state_->steps[step];
  for (const Column& column : rows.columns)
    for (SampleId sample : *samples)
      TROUPE_CHECK(!keys[column.key].places.contains(sample),
                   row_text(step, column.key, sample)
                     + " has a holder already (I6)");
  for (Column& column : rows.columns) {
    StashKey& key = keys[column.key];
    auto block = std::make_unique<StashBlock>();
    block->samples = samples;
    block->column = std::move(column);
    block->offsets = block->column.offsets();
    for (std::size_t i = 0; i < samples->size(); ++i)
      key.places.emplace((*samples)[i], StashPlace{block.get(), i});
    key.blocks.push_back(std::move(block));
  }
}

std::vector<GatheredColumn>
Stash::gather(StepId step, std::span<const std::string> keys,
              std::span<const SampleId> samples) const {
  std::lock_guard lock(state_->mutex);
  std::vector<GatheredColumn> result;
  for (const std::string& key : keys) {
    const StashKey& rows = state_->key_of(step, key);
    TROUPE_CHECK(!rows.blocks.empty(), "step " + to_string(step) + ", key '"
                                         + key + "' is not in this stash");
    GatheredColumn column{key, rows.blocks[0]->column.dtype, {}, {}};
    column.lengths.reserve(samples.size());
    for (SampleId sample : samples) {
      const StashPlace at = State::place_of(rows, step, key, sample);
      const Column& source = at.block->column;
      TROUPE_CHECK(source.dtype == column.dtype,
                   "key " + key + " in two types");
      column.lengths.push_back(source.lengths[at.index]);
      append_piece(column.pieces, source, at.block->offsets[at.index],
                   source.lengths[at.index]);
    }
    result.push_back(std::move(column));
  }
  return result;
}

Rows Stash::get(StepId step, std::span<const std::string> keys,
                std::span<const SampleId> samples) const {
  std::vector<Column> columns;
  for (GatheredColumn& gathered : gather(step, keys, samples)) {
    if (gathered.pieces.size() == 1) { // as it was stored: share it
      Buffer whole = gathered.pieces[0].data;
      const auto address = reinterpret_cast<std::uintptr_t>(whole.data());
      if (address % kBufferAlignment == 0) {
        columns.push_back({gathered.key, gathered.dtype,
                           std::move(gathered.lengths), std::move(whole)});
        continue;
      }
    }
    Column column
      = make_column(gathered.key, gathered.dtype, std::move(gathered.lengths));
    std::byte* target = column.data.data();
    for (const Piece& piece : gathered.pieces) {
      std::memcpy(target, piece.data.data(), piece.data.size_bytes());
      target += piece.data.size_bytes();
    }
    columns.push_back(std::move(column));
  }
  return Rows({samples.begin(), samples.end()}, std::move(columns));
}

bool Stash::has(StepId step, const std::string& key, SampleId sample) const {
  std::lock_guard lock(state_->mutex);
  return state_->key_of(step, key).places.contains(sample);
}

std::vector<std::uint32_t>
Stash::lengths(StepId step, const std::string& key,
               std::span<const SampleId> samples) const {
  std::lock_guard lock(state_->mutex);
  const StashKey& rows = state_->key_of(step, key);
  std::vector<std::uint32_t> result;
  result.reserve(samples.size());
  for (SampleId sample : samples) {
    const StashPlace at = State::place_of(rows, step, key, sample);
    result.push_back(at.block->column.lengths[at.index]);
  }
  return result;
}

void Stash::drop(StepId step) {
  StashStep freed; // outside the lock: freeing gigabytes takes time
  std::lock_guard lock(state_->mutex);
  auto found = state_->steps.find(step);
  if (found == state_->steps.end())
    return;
  freed = std::move(found->second);
  state_->steps.erase(found);
}

void Stash::clear() {
  std::map<StepId, StashStep> freed;
  std::lock_guard lock(state_->mutex);
  freed.swap(state_->steps);
}

std::uint64_t Stash::size_bytes() const {
  std::lock_guard lock(state_->mutex);
  std::uint64_t sum = 0;
  for (const auto& [step, keys] : state_->steps)
    for (const auto& [key, rows] : keys)
      for (const auto& block : rows.blocks)
        sum += block->column.data.size_bytes();
  return sum;
}

std::size_t Stash::num_steps() const {
  std::lock_guard lock(state_->mutex);
  return state_->steps.size();
}

} // namespace troupe::net
