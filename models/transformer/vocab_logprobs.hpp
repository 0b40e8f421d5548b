// From hidden states to what losses read, fused over the vocabulary: the
// log-probability of one token and the entropy of its distribution, those of K
// picked tokens beside it, or the K likeliest ones, in chunks
// of rows so that the logits of all tokens never exist at once unless they are
// small enough to keep for the gradient. Tp ranks hold a part of the vocabulary
// each and exchange four numbers per row: largest logit, sum of exponentials,
// their sum weighted by the logits, and the target's logit (Megatron's
// vocabulary-parallel cross entropy, with the entropy).
//
// Shapes: T packed tokens, R rows wanted, H hidden, V vocabulary, K picked
// tokens per row.
#pragma once

#include "config/base/dtype.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/parallel/tensor_peers.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace troupe::models {

/// The head and how its logits are scaled.
struct VocabularyHead {
  at::Tensor weight_VH;         ///< this rank's rows
  double temperature = 1.0;     ///< logits are divided by it
  std::int64_t first_token = 0; ///< id of the first row
  TensorPeers peers = {};       ///< ranks with the other rows
  double cap = 0; ///< logits become cap tanh(logit / cap) first; 0: none
  DType operands = DType::f32; ///< of products
  Backend* backend = &host_backend();

  std::int64_t vocab() const {
    return weight_VH.size(0);
  }
  std::int64_t hidden() const {
    return weight_VH.size(1);
  }
};

/// The ids that the sampler chose among, one row after the other.
struct KeptTokens {
  std::vector<std::int64_t> offsets_R1; ///< [R + 1]; empty: all, of every row
  std::vector<std::int32_t> ids;
};

/// The requested tokens: for hidden row `positions[r]`, the log-probability of
/// id `targets[r]`, which the caller stores at `entries[r]`.
struct WantedTokens {
  std::vector<std::int64_t> positions_R;
  std::vector<std::int32_t> targets_R;
  std::vector<std::int64_t> entries_R;      ///< [R] destination; may be empty
  std::vector<std::int32_t> picked_RK = {}; ///< ids besides the target
  std::int64_t picks = 0;                   ///< K; 0: none
  KeptTokens kept = {}; ///< the softmax is over these only (kept_logits.hpp)

  std::int64_t size() const {
    return static_cast<std::int64_t>(positions_R.size());
  }
};

/// The results of forward; memory of a Workspace.
struct TokenStatistics {
  float* logprobs_R = nullptr;
  float* entropy_R = nullptr;   ///< nats
  float* lse_R = nullptr;       ///< log-sum-exp of the scaled logits
  float* logits_RV = nullptr;   ///< raw; null if too large to keep
  PickedStatistics picked = {}; ///< if any are wanted
};

/// Gradients of what a loss read; a null pointer means zero. A loss reads the
/// log-probability of the target or those of the picked tokens, not both.
struct TokenGradients {
  const float* d_logprobs_R = nullptr;
  const float* d_entropy_R = nullptr;
  const float* d_picked_RK = nullptr;
  const float* d_picked_sums_R = nullptr; ///< of d_picked_RK over K
};

/// The likeliest tokens of rows, descending, equal ones by id.
struct TopTokens {
  std::int64_t per_row = 0; ///< K: as wanted, or the vocabulary if that is less
  std::vector<std::int32_t> ids_RK;
  std::vector<float> logprobs_RK;
};

/// Fills all of TokenStatistics; `keep_logits` allows keeping the logits for
/// `token_statistics_backward` (which otherwise recomputes them).
TokenStatistics token_statistics(const VocabularyHead& head,
                                 ConstTypedPtr hidden_TH,
                                 const WantedTokens& wanted,
                                 Workspace& workspace, bool keep_logits);

/// Adds to rows of `d_hidden_TH` and to `d_weight_VH`; what it adds to
/// `d_hidden_TH` is this rank's partial sum. Consumes kept logits.
void token_statistics_backward(
  const VocabularyHead& head, ConstTypedPtr hidden_TH,
  const WantedTokens& wanted, const TokenStatistics& found,
  const TokenGradients& gradients, TypedPtr d_hidden_TH,
  const at::Tensor& d_weight_VH, Workspace& workspace);

/// Returns the `per_row` likeliest tokens at each wanted row, of the vocabulary
/// of all tp ranks.
TopTokens top_tokens(const VocabularyHead& head, ConstTypedPtr hidden_TH,
                     const WantedTokens& wanted, std::int64_t per_row,
                     Workspace& workspace);

/// Computes this rank's logits[rows, V] / temperature of the first `rows`
/// hidden states.
void raw_logits(const VocabularyHead& head, ConstTypedPtr hidden_TH,
                std::int64_t rows, float* logits);

} // namespace troupe::models
