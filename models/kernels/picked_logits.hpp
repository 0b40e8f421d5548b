// Several tokens of each logit row, for losses that compare distributions: the
// logits of K given ids, their gradient, and the K largest logits. If tp ranks
// hold a part of the vocabulary each, an id's logit is on one of them.
//
// R rows, V vocabulary (of this rank), K picked per row, P ranks.
#pragma once

#include <cstdint>
#include <span>

namespace troupe::models {

struct PickedIds {
  std::int64_t rows = 0;    ///< R
  std::int64_t vocab = 0;   ///< V
  std::int64_t per_row = 0; ///< K
  float inverse_temperature = 1;
  float inverse_cap = 0; ///< of the soft cap of the logits; 0: not capped
  /// [R, K] counted from this rank's first vocabulary row; outside of [0, V)
  /// another rank has it.
  std::span<const std::int64_t> ids_RK;
};

/// Destinations of the picked numbers, joined over all ranks.
struct PickedStatistics {
  float* logits_RK = nullptr;   ///< capped, before the temperature
  float* logprobs_RK = nullptr; ///< at the temperature
};

/// Copies the logits [R, K] of the ids; -inf for those of other ranks.
void picked_logits(const PickedIds& picked, const float* logits_RV,
                   float* to_RK);
/// Computes the numbers of whole rows from all ranks' logits [P, R, K].
void join_picked(const PickedIds& picked, std::uint32_t peers,
                 const float* logits_PRK, const float* lse_R,
                 const PickedStatistics& found);
/// Adds to d logits [R, V] what d log-probabilities [R, K] give the picked
/// logits themselves; their share in the log-sum-exp is logit_gradient's.
void picked_gradient(const PickedIds& picked, const float* logits_RK,
                     const float* d_logprobs_RK, float* d_logits_RV);

/// The K largest logits of rows [R, V].
struct LargestLogits {
  std::int64_t rows = 0;
  std::int64_t vocab = 0;
  std::int64_t per_row = 0;
  std::int64_t first_token = 0; ///< id of the first column
};

/// Finds the largest logits of each row, descending, equal ones by id; where
/// the vocabulary has fewer, -inf with id -1 fills up.
void largest_logits(const LargestLogits& shape, const float* logits_RV,
                    float* values_RK, std::int32_t* ids_RK);

} // namespace troupe::models
