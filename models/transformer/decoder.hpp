// The stack for generation: rows of any mixture of prompts and responses go
// through it together, each at its own position of its own sequence, with keys
// and values in a KvCache. No autograd. Products run on packed copies of the
// weights; every number of a row depends on that row and its sequence alone, so
// batches may be mixed freely (I1 b).
//
// R rows of a pass, H hidden, V vocabulary, A heads, G key-value heads, D head
// dim, I intermediate.
#pragma once

#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/backend.hpp"
#include "models/kernels/typed_block.hpp"
#include "models/parallel/tensor_peers.hpp"
#include "models/transformer/decode_pass.hpp"
#include "models/transformer/decoder_experts.hpp"
#include "models/transformer/drawn_tokens.hpp"
#include "models/transformer/pass_table.hpp"
#include "models/transformer/transformer.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace troupe::models {

struct RunContext;

class Decoder {
public:
  /// Keeps references; packs nothing yet.
  Decoder(const ModelShape& shape, const Weights& weights, Backend& backend);

  /// Packs the current weights.
  void pack();

  /// Records the experts that rows go to from the next pass on, or ceases to.
  void record_experts(bool records);
  /// Returns the number of experts per row in this stage's layers.
  std::int64_t experts_per_row() const;
  /// Returns those of a row of the last feed, k per layer with experts.
  std::span<const std::int32_t> experts_of(std::int64_t row) const;

  /// Computes the rows and writes their keys and values. Rows of a slot are
  /// adjacent with rising positions. Checks `context` between layers. In a
  /// pipeline the stream is received from the previous stage and sent to the
  /// next one. If the device captures graphs, a pass with one row per slot is
  /// one launch: embedding, layers, and what the device draws. Ids may be
  /// `drawn_in` the last draw if this is the only stage.
  void feed(std::span<const DecodeToken> tokens, KvCache& cache,
            const RunContext& context, const PassDraw& draw = {});
  /// Returns whether the device can draw.
  bool draws() const {
    return backend_.draws();
  }
  /// Returns whether passes are captured, alike on all devices of a model.
  bool captures() const;
  /// Returns whether a pass can be launched before the host knows what the one
  /// before drew: not where it waits for the choice of experts.
  bool runs_ahead() const;
  /// Returns the tokens [N] that the last feed drew, equal on all tp ranks.
  DrawnTokens drawn();
  /// Returns logits [N, V] of the rows [N] of the last feed, equal on all tp
  /// ranks and readable by the host; valid until the next call. Last stage
  /// only.
  const float* logits(std::span<const std::int64_t> rows);

private:
  using Prepared = std::unique_ptr<PreparedWeight>;
  struct Layer {
    Prepared qkv;               ///< [(A+2G)*D, H]
    Prepared o;                 ///< [H, A*D]
    Prepared gate_up;           ///< [2I, H]
    Prepared down;              ///< [H, I]
    AlignedFloats qkv_bias;     ///< empty: no bias
    AlignedFloats gate_up_bias; ///< empty: no bias
    PackedExperts experts;
    std::vector<AlignedFloats> merged; ///< with adapters, where `Prepared` ones
                                       ///< are views
  };

  /// Logits, and the tokens that the device draws from them.
  struct LogitBuffers {
    TypedBlock last_NH; ///< rows whose logits are requested
    AlignedFloats all_NV;
    AlignedFloats of_peers; ///< [peers, N, ceil(V / peers)]
    std::unique_ptr<const net::HostRead> of_host;
    AlignedFloats drawn_N; ///< DrawnToken; in place, as the next pass reads it
    std::vector<std::int64_t> wanted; ///< of the drawn ones, by their index
  };

  /// Prepares weights in place of `old` ones, where these have the same shape.
  void prepare(Prepared& old, const at::Tensor& fused,
               std::initializer_list<at::Tensor> parts, DType operands);
  /// Prepares weights of a layer with their adapters added, in the same order.
  void prepare_adapted(Layer& layer, Prepared& old, const at::Tensor& fused,
                       std::initializer_list<at::Tensor> parts,
                       std::initializer_list<Adapter> adapters);
  void pack_experts(Layer& layer, const MoeWeights& moe);
  void stack_bias(AlignedFloats& old, std::initializer_list<at::Tensor> parts);
  void make_room(std::int64_t num_rows, const KvCache& cache);
  void write_tables(const PassDraw& draw, const PassWork& work);
  void make_logit_room(std::int64_t num_rows);
  void make_draw_room(std::int64_t num_rows);
  /// Returns the last draw.
  std::span<const DrawnToken> draw_before() const;
  void embed(const TensorPeers& peers);
  void layers(KvCache& cache, const TensorPeers& peers,
              const RunContext& context);
  void compute(const PassWork& work, KvCache& cache, const TensorPeers& peers,
               const RunContext& context);
  /// Captures the work, or replays it if it has been captured.
  void compute_recorded(const PassWork& work, PassShape shape, KvCache& cache,
                        const RunContext& context);
  /// Returns all addresses that a captured pass points to, and the strides
  /// between them that may change.
  std::vector<std::uintptr_t> places(KvCache& cache);
  /// Returns the buffer that this rank's part of a branch is added up in: the
  /// stream, or a buffer of its own if a norm follows. `end_branch` sums it
  /// over the tp group and adds it to the stream.
  TypedPtr begin_branch(std::int64_t num_rows, const TensorPeers& peers);
  void end_branch(std::int64_t num_rows, const Norm& behind,
                  const TensorPeers& peers);
  /// Adds x [R, k] B + bias to the stream, the product split over the tp ranks.
  void add_product(std::int64_t num_rows, const TypedBlock& x,
                   const PreparedWeight& b, const at::Tensor& bias,
                   const Norm& behind, const TensorPeers& peers);
  /// Adds this rank's part of a product to the buffer of a branch.
  void end_product(std::int64_t num_rows, const TypedBlock& x,
                   const PreparedWeight& b, const at::Tensor& bias,
                   const TensorPeers& peers, TypedPtr to);
  NormShape norm_shape(std::int64_t num_rows) const;
  /// Returns the norm of the stream in `to`, or the stream where there is none.
  ConstTypedPtr norm(const Norm& by, std::int64_t num_rows, TypedBlock& to);
  /// Norms queries and keys over all heads of a token, on all tp ranks.
  void norm_heads(const LayerWeights& w, std::int64_t num_rows,
                  const TensorPeers& peers);
  void attention(std::int64_t layer, ConstTypedPtr in_RH, KvCache& cache,
                 const TensorPeers& peers);
  /// Adds the outputs of the layer's experts to the buffer of a branch.
  void experts(std::int64_t layer, ConstTypedPtr in_RH, TypedPtr to);
  void dispatched_experts(std::int64_t layer, ConstTypedPtr in, TypedPtr to);
  MoeShape moe_shape(std::int64_t num_rows, const MoeWeights& moe) const;
  bool stays_on_device() const; ///< whether the host has no part in a pass
  /// Records a layer's experts from `column` of each row's record on.
  void record(const Routing& routing, std::int64_t column);
  /// Returns rows of the stream next to each other.
  ConstTypedPtr picked(std::span<const std::int64_t> rows_N);
  /// Computes logits [N, V] of rows, on the device.
  float* head(ConstTypedPtr rows_NH, std::int64_t count,
              const TensorPeers& peers);
  void draw_rows(ConstTypedPtr rows_NH, std::int64_t count,
                 const DrawFilters& filters, const TensorPeers& peers);
  /// Returns the buffers of activations.
  std::array<TypedBlock*, 10> activations();
  std::array<AlignedFloats*, 6> buffers();
  void mlp(std::int64_t layer, ConstTypedPtr in_RH, const TensorPeers& peers);

  const ModelShape& shape_;
  const Weights& weights_;
  Backend& backend_;
  RopeTables rope_;
  std::int64_t heads_width_;  ///< A*D
  std::vector<Layer> layers_; ///< packed
  Prepared head_;             ///< [V, H]
  TypedBlock stream_RH_;      ///< residual stream
  TypedBlock normed_RH_;      ///< norm of the stream
  TypedBlock qkv_RX_;         ///< [R, (A+2G)*D]
  TypedBlock context_RX_;     ///< [R, A*D]
  TypedBlock gate_up_RX_;     ///< [R, 2I], or [R, I] without a gate
  TypedBlock branch_RH_;      ///< of a layer with norms after its branches
  TypedBlock mlp_in_RH_;      ///< of a layer whose branches read one stream
  AlignedFloats sums_2R_;     ///< over all heads, of queries and of keys
  ExpertBuffers experts_;
  TypedBlock activation_RI_;
  LogitBuffers logits_;
  TensorPeers peers_; ///< of the last pass
  PassTable table_;
  DecodePass pass_;
  std::vector<DrawKey> keys_;  ///< of a captured pass's rows
  std::int64_t room_rows_ = 0; ///< capacity of the buffers
  CapturedPasses capture_;
};

} // namespace troupe::models
