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
#include "models/compute.hpp"
#include "models/decode_pass.hpp"
#include "models/tensor_peers.hpp"
#include "models/transformer.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

namespace troupe::net {
class Channel;
} // namespace troupe::net

namespace troupe::models {

struct RunContext;

class Decoder {
public:
  /// Keeps references; packs nothing yet.
  Decoder(const ModelShape& shape, const Weights& weights, Compute& compute);

  /// Packs the weights as they are now.
  void pack();

  /// Computes the rows and writes their keys and values. Rows of a slot are
  /// neighbours with rising positions. Checks `context` between layers. In a
  /// pipeline the rows' stream comes from the stage before and goes to the
  /// next. Where the device records, layers of passes with one row a slot are
  /// asked for at once.
  void feed(std::span<const DecodeRow> rows, KvCache& cache,
            const RunContext& context);
  /// Logits [N, V] of the rows of the last feed that `rows` [N] names, alike on
  /// all tensor peers, ready for the host; valid until the next call. Of the
  /// last stage only.
  const float* logits(std::span<const std::int64_t> rows,
                      const RunContext& context);

private:
  using Prepared = std::unique_ptr<PreparedWeight>;
  struct PackedExpert {
    Prepared gate_up; ///< [2I, H]
    Prepared down;    ///< [H, I]
  };
  struct Layer {
    Prepared qkv;               ///< [(A+2G)*D, H]
    Prepared o;                 ///< [H, A*D]
    Prepared gate_up;           ///< [2I, H]
    Prepared down;              ///< [H, I]
    AlignedFloats qkv_bias;     ///< empty without
    AlignedFloats gate_up_bias; ///< likewise
    Prepared router;            ///< [E, H]
    std::vector<PackedExpert> experts;
  };

  std::size_t stream_bytes() const;
  Prepared prepare(const at::Tensor& fused,
                   std::initializer_list<at::Tensor> parts, DType operands);
  AlignedFloats stack_bias(std::initializer_list<at::Tensor> parts);
  void make_room(const KvCache& cache);
  void embed(const TensorPeers& peers);
  void layers(KvCache& cache, const TensorPeers& peers,
              const RunContext& context);
  void recorded_layers(const PassShape& shape, KvCache& cache,
                       const TensorPeers& peers, const RunContext& context);
  /// Where this peer's part of a branch is added up, and what becomes of it:
  /// part of the stream, or of its norm where the layer has one behind.
  float* begin_branch(std::int64_t num_rows, const Norm& behind,
                      const TensorPeers& peers);
  void end_branch(std::int64_t num_rows, const Norm& behind,
                  const TensorPeers& peers);
  /// Adds x [R, k] B + bias to the stream, the product split over the peers.
  void add_product(std::int64_t num_rows, const AlignedFloats& x,
                   const PreparedWeight& b, const at::Tensor& bias,
                   const Norm& behind, const TensorPeers& peers);
  NormShape norm_shape(std::int64_t num_rows) const;
  void norm(const Norm& by, std::int64_t num_rows);
  void attention(std::int64_t layer, KvCache& cache, const TensorPeers& peers);
  void experts(std::int64_t layer, std::int64_t num_rows,
               const TensorPeers& peers);
  void finish(float* logits, std::int64_t count) const;
  void receive(net::Channel& previous);
  std::array<AlignedFloats*, 12> buffers();
  void mlp(std::int64_t layer, std::int64_t num_rows, const TensorPeers& peers);

  const ModelShape& shape_;
  const Weights& weights_;
  Compute& compute_;
  RopeTable rope_;
  std::int64_t heads_width_;  ///< A*D
  std::int64_t kv_width_;     ///< G*D
  std::vector<Layer> layers_; ///< packed
  Prepared head_;             ///< [V, H]
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
  AlignedFloats peer_logits_;            ///< [peers, N, ceil(V / peers)]
  AlignedFloats rows_;                   ///< of the pass, on the device
  std::vector<std::int64_t> table_rows_; ///< of the embedding, scratch
  DecodePass pass_;
  std::int64_t room_rows_ = 0;         ///< that buffers have room for
  std::uint64_t room_resets_ = 0;      ///< of the cache that recordings are of
  std::unique_ptr<Recorder> recorder_; ///< null: passes are not recorded
  bool recording_refused_ = false;
  RecordedPasses recorded_{16};
};

} // namespace troupe::models
