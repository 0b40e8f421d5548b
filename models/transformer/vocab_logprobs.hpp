// From hidden states to what losses read, fused over the vocabulary: the
// log-probability of one token and the entropy of its distribution, in chunks
// of rows so that the logits of all tokens never exist at once unless they are
// small enough to keep for the gradient. Tp ranks hold a part of the vocabulary
// each and exchange four numbers per row: largest logit, sum of exponentials,
// their sum weighted by the logits, and the target's logit (Megatron's
// vocabulary-parallel cross entropy, with the entropy).
//
// Shapes: T packed tokens, R rows wanted, H hidden, V vocabulary.
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

/// The requested tokens: for hidden row `positions[r]`, the log-probability of
/// id `targets[r]`, which the caller stores at `entries[r]`.
struct WantedTokens {
  std::vector<std::int64_t> positions_R;
  std::vector<std::int32_t> targets_R;
  std::vector<std::int64_t> entries_R; ///< [R] destination; may be empty

  std::int64_t size() const {
    return static_cast<std::int64_t>(positions_R.size());
  }
};

/// The results of forward; memory of a Workspace.
struct TokenStatistics {
  float* logprobs_R = nullptr;
  float* entropy_R = nullptr; ///< nats
  float* lse_R = nullptr;     ///< log-sum-exp of the scaled logits
  float* logits_RV = nullptr; ///< raw; null if too large to keep
};

/// Fills all of TokenStatistics; `keep_logits` allows keeping the logits for
/// `token_statistics_backward` (which otherwise recomputes them).
TokenStatistics token_statistics(const VocabularyHead& head,
                                 const float* hidden_TH,
                                 const WantedTokens& wanted,
                                 Workspace& workspace, bool keep_logits);

/// Adds to rows of `d_hidden_TH` and to `d_weight_VH`, given the gradients of
/// log-probabilities and entropies (null: none); what it adds to `d_hidden_TH`
/// is this rank's partial sum. Consumes kept logits.
void token_statistics_backward(
  const VocabularyHead& head, const float* hidden_TH,
  const WantedTokens& wanted, const TokenStatistics& found,
  const float* d_logprobs_R, const float* d_entropy_R, float* d_hidden_TH,
  const at::Tensor& d_weight_VH, Workspace& workspace);

/// Computes this rank's logits[rows, V] / temperature of the first `rows`
/// hidden states, readable by the host.
void raw_logits(const VocabularyHead& head, const float* hidden_TH,
                std::int64_t rows, float* logits);

} // namespace troupe::models
