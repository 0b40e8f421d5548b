// The stack for generation: rows of any mixture of prompts and
// answers go through it together, each at its own position of its own
// sequence, with keys and values in a KvCache. No autograd. Products run on
// packed copies of the weights; every number of a row comes from that row and
// its sequence alone, so batches may be mixed at will (I1 b).
//
// R rows of a pass, H hidden, V vocabulary, A heads, G key-value heads, D head
// dim, I intermediate.
#pragma once

#include "models/aligned_floats.hpp"
#include "models/gemm.hpp"
#include "models/kv_cache.hpp"
#include "models/rope.hpp"
#include "models/tensor_peers.hpp"
#include "models/transformer.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::models {

struct RunContext;

/// One token that enters the stack.
struct DecodeRow {
  std::int32_t token = 0;
  std::int32_t slot = 0;
  std::int32_t position = 0; ///< in its sequence; earlier ones are cached
};

class Decoder {
public:
  /// Keeps references to both; packs nothing yet.
  Decoder(const ModelShape& shape, const Weights& weights);

  /// Packs the weights as they are now.
  void pack();
  /// Gives packed weights and buffers back.
  void release();

  /// Computes the rows and writes their keys and values. Rows of a slot are
  /// neighbours with rising positions. Checks `context` between layers. In a
  /// pipeline the rows' stream comes from the stage before and goes to the
  /// next.
  void feed(std::span<const DecodeRow> rows, KvCache& cache,
            const RunContext& context);
  /// Logits [N, V] of the rows of the last feed that `rows` [N] names, alike on
  /// all tensor peers; valid until the next call. Of the last stage only.
  const float* logits(std::span<const std::int64_t> rows,
                      const RunContext& context);

private:
  struct PackedExpert {
    PackedMatrix gate_up; ///< [H, 2I]
    PackedMatrix down;    ///< [I, H]
  };
  struct Layer {
    PackedMatrix qkv;                ///< [H, (A+2G)*D]
    PackedMatrix o;                  ///< [A*D, H]
    PackedMatrix gate_up;            ///< [H, 2I]
    PackedMatrix down;               ///< [I, H]
    std::vector<float> qkv_bias;     ///< empty without
    std::vector<float> gate_up_bias; ///< likewise
    PackedMatrix router;             ///< [H, E]
    std::vector<PackedExpert> experts;
  };

  std::size_t stream_bytes(std::int64_t num_rows) const;
  void embed(std::span<const DecodeRow> rows, const TensorPeers& peers);
  /// Where this peer's part of a branch is added up, and what becomes of it:
  /// part of the stream, or of its norm where the layer has one behind.
  float* begin_branch(std::int64_t num_rows, const Norm& behind,
                      const TensorPeers& peers);
  void end_branch(std::int64_t num_rows, const Norm& behind,
                  const TensorPeers& peers);
  /// Adds x [R, k] B + bias to the stream, the product split over the peers.
  void add_product(std::int64_t num_rows, const AlignedFloats& x,
                   const PackedMatrix& b, const at::Tensor& bias,
                   const Norm& behind, const TensorPeers& peers);
  NormShape norm_shape(std::int64_t num_rows) const;
  void norm(const Norm& by, std::int64_t num_rows);
  void attention(std::int64_t layer, std::span<const DecodeRow> rows,
                 KvCache& cache, const TensorPeers& peers);
  void attend_rows(std::int64_t layer, std::int64_t head,
                   std::span<const DecodeRow> rows, std::int64_t first_row,
                   KvCache& cache);
  void place_head(const at::Tensor& norm, std::int32_t position, float scale,
                  float* head) const;
  void experts(std::int64_t layer, std::int64_t num_rows,
               const TensorPeers& peers);
  void cap(float* logits, std::int64_t count) const;
  void mlp(std::int64_t layer, std::int64_t num_rows, const TensorPeers& peers);

  const ModelShape& shape_;
  const Weights& weights_;
  RopeTable rope_;
  std::int64_t heads_width_;  ///< A*D
  std::int64_t kv_width_;     ///< G*D
  std::vector<Layer> layers_; ///< packed
  PackedMatrix head_;         ///< [H, V]
  AlignedFloats stream_RH_;   ///< residual stream
  AlignedFloats normed_RH_;   ///< its norm
  AlignedFloats qkv_RX_;      ///< [R, (A+2G)*D]
  AlignedFloats context_RX_;  ///< [R, A*D]
  AlignedFloats gate_up_RX_;  ///< [R, 2I], or [R, I] without a gate
  AlignedFloats branch_RH_;   ///< of a layer with norms behind
  AlignedFloats expert_RH_;   ///< rows of one expert, in and out
  AlignedFloats activation_RI_;
  AlignedFloats last_NH_; ///< rows that logits are asked of
  AlignedFloats logits_NV_;
  AlignedFloats peer_logits_;       ///< [peers, N, ceil(V / peers)]
  std::vector<std::size_t> groups_; ///< first row of each slot's rows, and R
};

} // namespace troupe::models
