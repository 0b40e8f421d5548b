// Shared by tests of the engine: random models in folders, rows, and dp groups
// of threads with the simplest correct collectives.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/engine/engine.hpp"
#include "net/base/rows.hpp"
#include "net/collectives/collectives.hpp"

#include "tests/support/models/small_shape.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace troupe::testing {

/// Writes config.json and normally distributed weights (std 0.1; norms about
/// 1).
void write_random_model(const std::filesystem::path& folder,
                        const ModelShape& shape, std::uint64_t seed);

/// Returns a role `actor` of the model in `folder` that trains ten steps at a
/// visible learning rate.
models::Engine::Spec trained_actor(const std::filesystem::path& folder);

/// Returns the same for tests that compare weights after sums in other orders.
/// AdamW divides by a gradient's size, so that its last bits, where it is as
/// small as eps, are a share of a whole step: here eps is larger.
models::Engine::Spec compared_actor(const std::filesystem::path& folder);

/// Returns a column of i32 / u8 / f32 rows from one vector per sample.
template <class T>
net::Column column_of(const std::string& key, DType dtype,
                      const std::vector<std::vector<T>>& per_sample) {
  std::vector<std::uint32_t> lengths;
  std::vector<T> packed;
  for (const std::vector<T>& own : per_sample) {
    lengths.push_back(static_cast<std::uint32_t>(own.size()));
    packed.insert(packed.end(), own.begin(), own.end());
  }
  return net::make_column(key, dtype, std::move(lengths), packed.data());
}
/// Returns the sample ids [0, count).
std::vector<SampleId> first_samples(std::size_t count);
/// Returns random `sequence_ids` of 2 to `longest` tokens and `loss_mask` with
/// a prompt of at least one token in front.
net::Rows random_sequences(std::size_t count, std::int32_t vocab,
                           std::size_t longest, std::uint64_t seed);
/// Returns the same columns of sequences of these lengths, each of at least 2
/// tokens.
net::Rows sequences_of(const std::vector<std::size_t>& lengths,
                       std::int32_t vocab, std::uint64_t seed);

/// Returns six random `prompt_ids` of tokens below `vocab`.
net::Rows random_prompts(std::int32_t vocab);

/// Returns the columns of random_sequences: `responses` random responses to
/// each of `prompts` prompts, one prompt after the other.
net::Rows random_responses(std::size_t prompts, std::size_t responses,
                           std::int32_t vocab, std::size_t longest,
                           std::uint64_t seed);

/// Returns `size` members for as many threads of this process; sums in rank
/// order.
std::vector<std::shared_ptr<net::Collectives>>
thread_collectives(std::uint32_t size);

/// Splits packed numbers by offsets.
template <class T>
std::vector<std::vector<T>> split(const std::vector<T>& packed,
                                  const std::vector<double>& cu_seqlens) {
  std::vector<std::vector<T>> parts;
  for (std::size_t i = 0; i + 1 < cu_seqlens.size(); ++i)
    parts.emplace_back(
      packed.begin() + static_cast<std::ptrdiff_t>(cu_seqlens[i]),
      packed.begin() + static_cast<std::ptrdiff_t>(cu_seqlens[i + 1]));
  return parts;
}

} // namespace troupe::testing
