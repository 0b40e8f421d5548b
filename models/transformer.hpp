// The stack of LLaMA and Qwen2 as plain structs of tensors and free functions:
// forward over packed sequences, and the matching backward by hand (no autograd
// inside, so nothing is kept that is not needed and no per-op overhead).
//
// Shapes: T packed tokens, N sequences, H hidden, V vocabulary, A heads,
// G key-value heads, D head dim, I intermediate.  All fp32, contiguous.
#pragma once

#include "models/parameters.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::models {

struct RunContext;

/// One decoder layer's parameters in one plane (weights or gradients).
struct LayerWeights {
  at::Tensor input_norm; ///< [H]
  at::Tensor q;          ///< [A*D, H]
  at::Tensor k;          ///< [G*D, H]
  at::Tensor v;          ///< [G*D, H]
  at::Tensor q_bias;     ///< [A*D], undefined without attention bias
  at::Tensor k_bias;     ///< [G*D], likewise
  at::Tensor v_bias;     ///< [G*D], likewise
  at::Tensor qkv;        ///< [(A+2G)*D, H] where q, k, v are neighbours, or
                         ///< undefined
  at::Tensor o;          ///< [H, A*D]
  at::Tensor post_norm;  ///< [H]
  at::Tensor gate;       ///< [I, H]
  at::Tensor up;         ///< [I, H]
  at::Tensor gate_up;    ///< [2I, H] where neighbours, or undefined
  at::Tensor down;       ///< [H, I]
};

/// A whole model's parameters in one plane.
struct Weights {
  at::Tensor embedding; ///< [V, H]
  std::vector<LayerWeights> layers;
  at::Tensor final_norm; ///< [H]
  at::Tensor head;       ///< [V, H] (the embedding itself when tied), or [1, H]
  bool scalar_head = false;
};

/// Views of one plane by role in the stack.
Weights weights_of(const ModelShape& shape, const Parameters& parameters,
                   Plane plane);

/// Packed sequences: token ids and where each sequence begins.
struct PackedTokens {
  at::Tensor ids_T;                     ///< i32
  std::vector<std::int64_t> cu_seqlens; ///< [N+1]

  std::int64_t num_tokens() const {
    return cu_seqlens.back();
  }
  std::int64_t num_sequences() const {
    return static_cast<std::int64_t>(cu_seqlens.size()) - 1;
  }
};
PackedTokens pack(std::span<const std::span<const std::int32_t>> sequences);

/// What backward needs of one layer.
struct LayerSaved {
  at::Tensor input_TH;   ///< residual stream before the layer
  at::Tensor rstd1_T;    ///< 1/rms of input
  at::Tensor qkv_TX;     ///< [T, (A+2G)*D], q and k rotated
  at::Tensor lse_TA;     ///< log-sum-exp of the attention scores
  at::Tensor context_TX; ///< [T, A*D] attention output
  at::Tensor middle_TH;  ///< residual stream after attention
  at::Tensor rstd2_T;
  at::Tensor gate_up_TX; ///< [T, 2I]
};
struct Saved {
  std::vector<LayerSaved> layers;
  at::Tensor last_TH; ///< residual stream after the last layer
  at::Tensor rstd_T;
};

/// cos and sin of every position and frequency, with the model's rope scaling.
struct RopeTable {
  at::Tensor cos_PF; ///< [positions, D/2]
  at::Tensor sin_PF;
};
RopeTable make_rope_table(const ModelShape& shape, std::int64_t positions);

/// A model ready to run: shape, weights, rope.
struct Transformer {
  const ModelShape& shape;
  const Weights& weights;
  const RopeTable& rope; ///< at least as long as the longest sequence
};

/// Residual stream before layer 0: rows of the embedding. [T, H]
at::Tensor embed(const Transformer& model, const at::Tensor& ids_T);

/// Final hidden states after the final norm, [T, H], each sequence alone with
/// positions from 0. `saved` non-null keeps what `backward` needs. `probe_TH`,
/// if given, receives the residual stream before layer 0 and after each layer.
at::Tensor forward(const Transformer& model, const PackedTokens& batch,
                   const RunContext& context, Saved* saved,
                   std::vector<at::Tensor>* probe_TH = nullptr);

/// Adds d loss / d parameter to `grads`, given d loss / d forward's result.
/// Consumes `saved`. Does not touch the head.
void backward(const Transformer& model, const PackedTokens& batch, Saved& saved,
              const at::Tensor& d_hidden_TH, const Weights& grads,
              const RunContext& context);

} // namespace troupe::models
