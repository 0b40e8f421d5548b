// The stack of all families as plain structs and free functions: forward over
// packed sequences, and the matching backward by hand (no autograd inside, so
// nothing is kept that is not needed and no per-op overhead). What a family's
// layers have that others have not is a parameter that is there or a number of
// ModelShape; nothing here asks for a family's name.
//
// Shapes: T packed tokens, N sequences, H hidden, V vocabulary, A heads,
// G key-value heads, D head dim, I intermediate.  All fp32, contiguous.
#pragma once

#include "models/host_compute.hpp"
#include "models/moe.hpp"
#include "models/parameters.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe::models {

struct ModelPart;
struct RunContext;

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

/// One decoder layer's parameters in one plane (weights or gradients).
struct LayerWeights {
  Norm input_norm;
  at::Tensor q;            ///< [A*D, H]
  at::Tensor k;            ///< [G*D, H]
  at::Tensor v;            ///< [G*D, H]
  at::Tensor q_bias;       ///< [A*D], undefined without attention bias
  at::Tensor k_bias;       ///< [G*D], likewise
  at::Tensor v_bias;       ///< [G*D], likewise
  at::Tensor qkv;          ///< [(A+2G)*D, H] where q, k, v are neighbours, or
                           ///< undefined
  at::Tensor o;            ///< [H, A*D]
  at::Tensor o_bias;       ///< [H], where the family has one
  at::Tensor q_norm;       ///< [D], Qwen3: of each head's query
  at::Tensor k_norm;       ///< [D], likewise
  Norm behind_attention;   ///< Gemma 2: of the attention's output
  Norm post_norm;          ///< of the MLP's input
  at::Tensor gate;         ///< [I, H], undefined without a gate
  at::Tensor up;           ///< [I, H]
  at::Tensor gate_up;      ///< [2I, H] where neighbours, or undefined
  at::Tensor down;         ///< [H, I]
  at::Tensor gate_bias;    ///< [I], where the family has one
  at::Tensor up_bias;      ///< [I], likewise
  at::Tensor down_bias;    ///< [H], likewise
  Norm behind_mlp;         ///< Gemma 2: of the MLP's output
  MoeWeights moe;          ///< Mixtral: instead of gate, up and down
  std::int64_t window = 0; ///< tokens a token sees; 0: all before it

  bool has_experts() const {
    return !moe.experts.empty();
  }
};

/// A whole model's parameters in one plane.
struct Weights {
  at::Tensor embedding; ///< [V, H], rows of ids from `first_token` on; first
                        ///< stage
  at::Tensor positions; ///< [P, H], GPT-2: learned; first stage
  std::vector<LayerWeights> layers;
  Norm final_norm; ///< last stage
  at::Tensor head; ///< [V, H] (the embedding itself when tied), or [1, H]; last
                   ///< stage
  bool scalar_head = false;
  std::int64_t first_token = 0; ///< of embedding and vocabulary head
  DType operands = DType::f32;  ///< of products with them (gemm.hpp)
};

/// Views of one plane by role in the stack.
Weights weights_of(const ModelPart& part, const Parameters& parameters,
                   Plane plane);
/// The same of a whole model on one device.
Weights weights_of(const ModelShape& shape, const Parameters& parameters,
                   Plane plane);

/// Packed sequences: token ids and where each sequence begins. A sequence may
/// continue another, then it sees that one's tokens too, as if they stood
/// before its own (models/shared_prompt.hpp).
struct PackedTokens {
  std::vector<std::int32_t> ids_T;
  std::vector<std::int32_t> positions_T; ///< within the sequence, from 0
  std::vector<std::int64_t> cu_seqlens;  ///< [N+1]
  /// [N] the sequence that each continues, which itself continues none and is
  /// followed by all that continue it; -1: none. Empty: nobody continues.
  std::vector<std::int32_t> continues;

  std::int64_t num_tokens() const {
    return cu_seqlens.back();
  }
  std::int64_t num_sequences() const {
    return static_cast<std::int64_t>(cu_seqlens.size()) - 1;
  }
};
PackedTokens pack(std::span<const std::span<const std::int32_t>> sequences);

/// What backward needs of one layer; memory of a Workspace.
struct LayerSaved {
  float* input_TH = nullptr;   ///< residual stream before the layer
  float* rstd1_T = nullptr;    ///< 1/rms of input
  float* qkv_TX = nullptr;     ///< [T, (A+2G)*D], q and k rotated
  float* lse_AT = nullptr;     ///< log-sum-exp of the attention scores
  float* context_TX = nullptr; ///< [T, A*D] attention output
  float* middle_TH = nullptr;  ///< residual stream after attention
  float* rstd2_T = nullptr;
  float* gate_up_TX = nullptr; ///< [T, 2I], or [T, I] without a gate; [S, 2I]
                               ///< of experts
  float* raw_qk_TX = nullptr;  ///< [T, (A+G)*D] heads before their norms
  float* behind1_TH = nullptr; ///< attention's output before its norm
  float* rstd3_T = nullptr;
  float* behind2_TH = nullptr; ///< MLP's output before its norm
  float* rstd4_T = nullptr;
  Routing* routing = nullptr; ///< of experts
};
struct Saved {
  /// Keep the layers' inputs only and compute the rest again in backward: the
  /// layers share one LayerSaved's memory but for `input_TH`. The same bits.
  bool recompute = false;
  std::vector<LayerSaved> layers;
  std::vector<std::unique_ptr<Routing>> routings; ///< of layers with experts
  float* last_TH = nullptr; ///< residual stream after the last layer
  float* rstd_T = nullptr;
};

/// Told by forward and backward which layer (of the whole model's) they use; -1
/// is the embedding, the number of layers the final norm and the head, before
/// whose backward the caller of `backward` says so. For what happens beside
/// them: gradients that are summed while others are still computed, weights
/// that come and go. All of it on the thread that computes.
class LayerGate {
public:
  virtual ~LayerGate() = default;
  virtual void before_forward(std::int64_t) {}
  virtual void before_backward(std::int64_t) {}
  virtual void after_backward(std::int64_t) {} ///< its gradient is complete
};
inline LayerGate no_gate; ///< of whoever does not want to know

/// A model ready to run: shape, weights, rope.
struct Transformer {
  const ModelShape& shape;
  const Weights& weights;
  const RopeTable& rope; ///< at least as long as the longest sequence
  /// Tensor peers keep a part of the tokens' residual stream each.
  bool split_tokens = false;
  std::int64_t first_layer = 0; ///< of the whole model's
  LayerGate* gate = &no_gate;
  Compute* compute = &host_compute();
};

/// Factor of the embedding's rows.
float embedding_scale(const ModelShape& shape);

/// Residual stream before layer 0: rows of the embedding, [T, H]; zeros for ids
/// whose rows another tensor peer has.
void embed(const Transformer& model, std::span<const std::int32_t> ids_T,
           float* out_TH);

/// Final hidden states after the final norm, [T, H] in `workspace` and alike on
/// all tensor peers, each sequence alone with positions from 0. `saved`
/// non-null keeps what `backward` needs there too. `probe`, if given, receives
/// copies of the residual stream [T, H] before layer 0 and after each layer. In
/// a pipeline the stream comes from the stage before and goes to the next one;
/// only the last stage has a result, the others return null. Throws
/// FailureError{aborted} between layers when asked to stop.
float* forward(const Transformer& model, const PackedTokens& batch,
               const RunContext& context, Workspace& workspace, Saved* saved,
               std::vector<std::vector<float>>* probe = nullptr);

/// Floats of a buffer for the gradient of forward's result.
std::int64_t hidden_floats(const Transformer& model, const PackedTokens& batch,
                           const RunContext& context);

/// Adds d loss / d parameter to `grads` given d loss / d forward's result
/// [T, H] (`hidden_floats`; tensor peers give parts of a sum), which it
/// overwrites like `saved`. Does not touch the head. In a pipeline the gradient
/// of the stream comes from the next stage, where there is one (`d_hidden_TH`
/// is null then), and goes to the one before.
void backward(const Transformer& model, const PackedTokens& batch,
              const Saved& saved, float* d_hidden_TH, const Weights& grads,
              const RunContext& context, Workspace& workspace);

} // namespace troupe::models
