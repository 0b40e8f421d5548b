// What tests of the engine share: random models in folders, rows, and dp groups
// of threads with the simplest collectives that can be right.
#pragma once

#include "config/model_shape.hpp"
#include "models/engine.hpp"
#include "net/collectives.hpp"
#include "net/rows.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace troupe::testing {

/// A small LLaMA: grouped heads, untied, sizes that fill no vector evenly.
ModelShape small_shape();
/// config.json and normally distributed weights (std 0.1; norms about 1).
void write_random_model(const std::filesystem::path& folder,
                        const ModelShape& shape, std::uint64_t seed);

/// A role `actor` of the model in `folder` that trains ten steps at a rate that
/// shows.
models::Engine::Spec trained_actor(const std::filesystem::path& folder);

/// Rows of i32 / u8 / f32 columns from one vector a sample.
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
/// Sample ids 0 .. count-1.
std::vector<SampleId> first_samples(std::size_t count);
/// Random `sequence_ids` of 2 .. `longest` tokens and `loss_mask` with a prompt
/// of at least one token in front.
net::Rows random_sequences(std::size_t count, std::int32_t vocab,
                           std::size_t longest, std::uint64_t seed);

/// Six random `prompt_ids` of tokens below `vocab`.
net::Rows random_prompts(std::int32_t vocab);

/// The same columns: `answers` random answers to each of `prompts` prompts, one
/// prompt after the other.
net::Rows random_answers(std::size_t prompts, std::size_t answers,
                         std::int32_t vocab, std::size_t longest,
                         std::uint64_t seed);

/// `size` members for as many threads of this process; sums in rank order.
std::vector<std::shared_ptr<net::Collectives>>
thread_collectives(std::uint32_t size);

/// Cuts packed numbers by offsets.
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
