// The parameters of a model by their role in the stack: views of a plane of
// weights or gradients. Features of a family are parameters that exist.
//
// H hidden, V vocabulary, P positions, A heads, G key-value heads, D head dim,
// I intermediate. Contiguous; fp32, but for weights of products where these
// are stored in bf16 (models/parallel/rounded_weights.hpp).
#pragma once

#include "config/base/dtype.hpp"
#include "config/model/model_shape.hpp"
#include "models/kernels/norm.hpp"
#include "models/parallel/parameters.hpp"
#include "models/transformer/adapter.hpp"
#include "models/transformer/moe.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace troupe::models {

struct LocalModel;

/// A norm's parameters in one plane.
struct Norm {
  at::Tensor weight; ///< [H]
  at::Tensor bias;   ///< [H], LayerNorm only

  bool defined() const {
    return weight.defined();
  }
  NormWeights weights() const;
  NormGrads grads() const;
};

/// The norms of queries and keys in one plane, of each head or of all heads
/// together; undefined: none.
struct QkNorms {
  at::Tensor q; ///< [D] or [A*D]
  at::Tensor k; ///< [D] or [G*D]
};

/// One decoder layer's parameters in one plane (weights or gradients). Of
/// frozen ones there are no gradients: their views are undefined.
struct LayerWeights {
  Norm input_norm;       ///< norm of the attention's input; OLMo 2: none
  at::Tensor q;          ///< [A*D, H]
  at::Tensor k;          ///< [G*D, H]
  at::Tensor v;          ///< [G*D, H]
  at::Tensor q_bias;     ///< [A*D], undefined without attention bias
  at::Tensor k_bias;     ///< [G*D], same
  at::Tensor v_bias;     ///< [G*D], same
  at::Tensor qkv;        ///< [(A+2G)*D, H] if q, k, v are adjacent, or
                         ///< undefined
  at::Tensor o;          ///< [H, A*D]
  at::Tensor o_bias;     ///< [H], if the family has one
  QkNorms qk_norms;      ///< Qwen3, OLMo 2
  Norm behind_attention; ///< Gemma 2: norm of the attention's output
  Norm post_norm;        ///< norm of the MLP's input; OLMo 2: none
  at::Tensor gate;       ///< [I, H], undefined without a gate
  at::Tensor up;         ///< [I, H], undefined in layers with experts only
  at::Tensor gate_up;    ///< [2I, H] if adjacent, or undefined
  at::Tensor down;       ///< [H, I]
  at::Tensor gate_bias;  ///< [I], if the family has one
  at::Tensor up_bias;    ///< [I], same
  at::Tensor down_bias;  ///< [H], same
  Norm behind_mlp;       ///< Gemma 2: norm of the MLP's output
  MoeWeights moe; ///< Mixtral: instead of gate, up and down; GLM-4.5: beside
  LayerAdapters adapters;
  LayerPositions positions;

  bool has_experts() const {
    return !moe.experts.empty();
  }
  bool has_mlp() const { ///< for all tokens
    return up.defined();
  }
};

/// A whole model's parameters in one plane.
struct Weights {
  at::Tensor embedding; ///< [V, H], ids from `first_token` on; first stage
  at::Tensor positions; ///< [P, H], GPT-2: learned; first stage
  std::vector<LayerWeights> layers;
  Norm final_norm; ///< last stage
  at::Tensor head; ///< [V, H] (the embedding if tied) or [1, H]; last stage
  bool scalar_head = false;
  std::int64_t first_token = 0; ///< of embedding and vocabulary head
  DType operands = DType::f32;  ///< of products with them (gemm.hpp)
  float adapter_scale = 0;      ///< alpha / rank
};

/// Returns views of one plane by their role in the stack.
Weights weights_of(const LocalModel& part, const Parameters& parameters,
                   Plane plane);
/// Returns views of a model with adapters: frozen parameters, a part laid out
/// as `base` (null: none, as in other planes than the weights), the trained
/// ones in one plane of `trained`.
Weights weights_of(const LocalModel& base, const Parameters* frozen,
                   const Parameters& trained, Plane plane);
/// Returns the same for a whole model on one device.
Weights weights_of(const ModelShape& shape, const Parameters& parameters,
                   Plane plane);

} // namespace troupe::models
