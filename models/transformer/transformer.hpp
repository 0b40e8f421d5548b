// The stack of all model families as plain structs and free functions: forward
// over packed sequences, and the matching hand-written backward (no autograd
// inside, so only what is needed is kept, without per-op overhead). Features of
// a family are parameters that exist or numbers of ModelShape; no code here
// checks a family's name.
//
// Shapes: T packed tokens, N sequences, H hidden, V vocabulary, A heads, G
// key-value heads, D head dim, I intermediate.  Contiguous; activations
// are stored as `storage` says, statistics in fp32.
#pragma once

#include "models/kernels/host_backend.hpp"
#include "models/parallel/context_rows.hpp"
#include "models/transformer/moe.hpp"
#include "models/transformer/weights.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace troupe::models {

struct RunContext;

/// Packed sequences: token ids and the start of each sequence. A sequence may
/// continue another; then it sees that one's tokens too, as if they came before
/// its own (models/transformer/shared_prompt.hpp).
struct PackedTokens {
  std::vector<std::int32_t> ids_T;
  std::vector<std::int32_t> positions_T; ///< within the sequence, from 0
  std::vector<std::int64_t> cu_seqlens;  ///< [N+1]
  /// [N] the sequence that each one continues, which itself continues none and
  /// is followed by all that continue it; -1: none. Empty: none at all.
  std::vector<std::int32_t> continues;
  /// [T, W] experts that tokens go to in all layers with experts, k per layer;
  /// -1: the router chooses. Empty: it always does.
  std::vector<std::int32_t> experts_TW;
  /// The keys that these tokens see, if they are those of a cp rank: then they
  /// are packed as one sequence, whatever sequences they are of.
  std::optional<ContextRows> context;
  /// Weight of the balance loss of a sequence's experts in one layer; 0: none.
  double balance_weight = 0;

  std::int64_t num_tokens() const {
    return cu_seqlens.back();
  }
  std::int64_t num_sequences() const {
    return static_cast<std::int64_t>(cu_seqlens.size()) - 1;
  }
  /// Returns [T] how many sequences each token belongs to: those of a prefix to
  /// all that continue it.
  std::vector<std::int64_t> copies_T() const;
};
PackedTokens pack(std::span<const std::span<const std::int32_t>> sequences);

/// Values of one layer that backward needs; memory of a Workspace.
struct LayerSaved {
  TypedPtr input_TH;        ///< residual stream before the layer
  float* rstd1_T = nullptr; ///< 1/rms of input
  TypedPtr qkv_TX;          ///< [T, (A+2G)*D], q and k rotated
  float* lse_AT = nullptr;  ///< log-sum-exp of the attention scores
  TypedPtr context_TX;      ///< [T, A*D] attention output
  TypedPtr middle_TH;       ///< residual stream after attention
  float* rstd2_T = nullptr;
  TypedPtr gate_up_TX; ///< [T, 2I], or [T, I] without a gate
  TypedPtr raw_qk_TX;  ///< [T, (A+G)*D] q and k before their norms
  TypedPtr behind1_TH; ///< attention's output before its norm
  float* rstd3_T = nullptr;
  TypedPtr behind2_TH; ///< MLP's output before its norm
  float* rstd4_T = nullptr;
  RoutedTokens* experts = nullptr; ///< of Saved
};
struct Saved {
  /// Keeps the layers' inputs only; backward recomputes the rest with the same
  /// bits. The layers share one LayerSaved's memory except for `input_TH`.
  bool recompute = false;
  std::vector<LayerSaved> layers;
  std::vector<std::unique_ptr<RoutedTokens>> routed; ///< by layer
  TypedPtr last_TH; ///< residual stream after the last layer
  float* rstd_T = nullptr;
};

/// Observer that forward and backward notify of the layer (index in the whole
/// model) that they use; -1 is the embedding, the number of layers is the final
/// norm and the head, whose backward the caller of `backward` announces. For
/// overlap: sums of finished gradients, sharded weights that are gathered and
/// freed. Called on the thread that computes.
class LayerGate {
public:
  virtual ~LayerGate() = default;
  virtual void before_forward(std::int64_t) {}
  virtual void before_backward(std::int64_t) {}
  virtual void after_backward(std::int64_t) {} ///< its gradient is complete
};
inline LayerGate no_gate; ///< does nothing

/// A model ready to run: shape, weights, rope.
struct Transformer {
  const ModelShape& shape;
  const Weights& weights;
  const RopeTables& rope; ///< at least as long as the longest sequence
  /// True: each tp rank keeps a part of the tokens' residual stream.
  bool split_tokens = false;
  std::int64_t first_layer = 0; ///< index in the whole model
  LayerGate* gate = &no_gate;
  Backend* backend = &host_backend();
};

/// Returns the factor of the embedding's rows.
float embedding_scale(const ModelShape& shape);

/// Computes the residual stream before layer 0: rows of the embedding, [T, H];
/// zeros for ids whose rows another tp rank has.
void embed(const Transformer& model, std::span<const std::int32_t> ids_T,
           TypedPtr out_TH);

/// Returns the hidden states after the final norm, [T, H] in `workspace` and
/// equal on all tp ranks; each sequence is separate with positions from 0. A
/// non-null `saved` keeps what `backward` needs, there too. `probe`, if given,
/// receives copies of the residual stream [T, H] before layer 0 and after each
/// layer. In a pipeline the stream is received from the previous stage and sent
/// to the next; only the last stage has a result, the others return null.
/// Throws FailureError{aborted} between layers when asked to stop.
TypedPtr forward(const Transformer& model, const PackedTokens& batch,
                 const RunContext& context, Workspace& workspace, Saved* saved,
                 std::vector<std::vector<float>>* probe = nullptr);

/// Returns the floats of a buffer for the gradient of forward's result.
std::int64_t hidden_floats(const Transformer& model, const PackedTokens& batch,
                           const RunContext& context);

/// Adds d loss / d parameter to `grads`, given d loss / d forward's result [T,
/// H] (`hidden_floats`; partial sums on tp ranks), which it overwrites like
/// `saved`. Does not touch the head. In a pipeline the gradient of the stream
/// is received from the next stage, if any (then `d_hidden_TH` is null), and
/// sent to the previous one.
void backward(const Transformer& model, const PackedTokens& batch,
              const Saved& saved, TypedPtr d_hidden_TH, const Weights& grads,
              const RunContext& context, Workspace& workspace);

} // namespace troupe::models
