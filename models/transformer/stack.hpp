// Shared by forward and backward of the stack: buffer sizes of a batch and the
// products that a layer computes from one input (fused if the weights are
// adjacent, one by one if biases or padding are between them).
#pragma once

#include "models/kernels/attention_pieces.hpp"
#include "models/kernels/linear.hpp"
#include "models/kernels/qk_norm.hpp"
#include "models/parallel/tensor_peers.hpp"
#include "models/transformer/transformer.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace troupe::net {
class Channel;
} // namespace troupe::net

namespace troupe::models::stack {

/// Returns the factor of the scores that a model states; 0: 1 / sqrt(D).
double stated_score_scale(const ModelShape& shape);

/// Types of numbers in a run of the stack.
struct NumberTypes {
  DType operands = DType::f32; ///< of products
  DType storage = DType::f32;  ///< of activations
};

/// Widths of a batch's buffers, in elements per token.
struct Sizes {
  std::int64_t tokens = 0;  ///< T
  std::int64_t hidden = 0;  ///< H
  std::int64_t heads = 0;   ///< A
  std::int64_t context = 0; ///< A*D
  std::int64_t kv = 0;      ///< G*D
  std::int64_t qkv = 0;     ///< (A+2G)*D
  MlpShape widest;          ///< the widest MLP for all tokens, T rows
  float eps = 0;
  NormKind norm = NormKind::rms;
  TokenRange own;            ///< rows of the stream on this rank
  std::int64_t stream = 0;   ///< elements of this rank's stream buffer
  std::int64_t gathered = 0; ///< elements of the whole stream's buffer
  NumberTypes types;

  /// Returns the shape of a layer's MLP for all tokens.
  MlpShape unit(const LayerWeights& w) const {
    MlpShape unit = widest;
    unit.width = w.up.size(0);
    return unit;
  }
  ProductRows rows() const {
    return {tokens, types.operands};
  }
  NormShape norm_shape() const { ///< for the rows on this rank
    return {own.count, hidden, eps, norm};
  }
};
Sizes sizes(const Transformer& model, const PackedTokens& batch,
            const TensorPeers& peers);
AttentionShape attention_shape(const Transformer& model, const LayerWeights& w,
                               const PackedTokens& batch);
/// Returns the attention of a cp rank's tokens.
PieceShape piece_shape(const Transformer& model, const LayerWeights& w,
                       const PackedTokens& batch);
MoeShape moe_shape(const Transformer& model, const MoeWeights& experts,
                   const PackedTokens& batch, const Sizes& z,
                   const TensorPeers& peers);

/// The norm of queries or of keys (of each head, or of all): heads from
/// `column` of qkv on, whose raw values are stored from `raw` on.
struct QkNorm {
  QkNormShape shape;
  at::Tensor weight;
  std::int64_t column = 0;
  std::int64_t raw = 0;
};
std::array<QkNorm, 2> qk_norms(const LayerWeights& w, const ModelShape& shape,
                               const Sizes& z);

/// Returns the stream that the MLP reads.
inline TypedPtr mlp_input(const ModelShape& shape, const LayerSaved& s) {
  return shape.parallel_residual ? s.input_TH : s.middle_TH;
}

/// One product: its output begins at `column` of each row.
struct Piece {
  at::Tensor weight;
  at::Tensor bias;
  std::int64_t column = 0;
};
std::vector<Piece> qkv_pieces(const LayerWeights& w, const Sizes& z);
std::vector<Piece> mlp_pieces(const LayerWeights& w, const MlpShape& unit);

/// One adapter of such products: its output begins at `column` of each row.
struct AdapterPiece {
  Adapter adapter; ///< defined
  Adapter grads;   ///< in backward
  std::int64_t column = 0;
};
/// Returns the adapters of `w`, with their gradients in `g`.
std::vector<AdapterPiece> qkv_adapters(const LayerAdapters& w,
                                       const LayerAdapters& g, const Sizes& z);
std::vector<AdapterPiece> mlp_adapters(const LayerAdapters& w,
                                       const LayerAdapters& g,
                                       const MlpShape& unit);
AdapterMath adapter_math(const Transformer& model, const Sizes& z,
                         Workspace& workspace);

/// Sends `count` numbers of the stream, if any, to a pipeline neighbour: in the
/// order of the device's kernels if the channel has streams, else after waiting
/// for the device, whose memory the channel takes. `receive` is its
/// counterpart.
void send(Backend& backend, net::Channel& to, ConstTypedPtr x,
          std::int64_t count, const char* name);
void receive(Backend& backend, net::Channel& from, TypedPtr x,
             std::int64_t count, const char* name);

} // namespace troupe::models::stack
