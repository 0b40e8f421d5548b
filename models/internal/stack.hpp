// What forward and backward of the stack share: sizes of a batch's buffers and
// the products that a layer makes from one input (fused where the weights are
// neighbours, one by one where biases or padding stand between).
#pragma once

#include "models/attention.hpp"
#include "models/head_norm.hpp"
#include "models/linear.hpp"
#include "models/tensor_peers.hpp"
#include "models/transformer.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace troupe::net {
class Channel;
} // namespace troupe::net

namespace troupe::models::stack {

/// Widths of a batch's buffers, in floats a token.
struct Sizes {
  std::int64_t tokens = 0;  ///< T
  std::int64_t hidden = 0;  ///< H
  std::int64_t heads = 0;   ///< A
  std::int64_t context = 0; ///< A*D
  std::int64_t kv = 0;      ///< G*D
  std::int64_t qkv = 0;     ///< (A+2G)*D
  MlpShape unit;            ///< of the MLP (or of one expert), T rows
  float eps = 0;
  NormKind norm = NormKind::rms;
  TokenRange own;              ///< rows of the stream here
  std::int64_t stream = 0;     ///< floats of the stream's buffer here
  std::int64_t gathered = 0;   ///< floats of the whole stream's buffer
  DType operands = DType::f32; ///< of products

  ProductRows rows() const {
    return {tokens, operands};
  }
  NormShape norm_shape() const { ///< of the rows here
    return {own.count, hidden, eps, norm};
  }
};
Sizes sizes(const Transformer& model, const PackedTokens& batch,
            const TensorPeers& peers);
AttentionShape attention_shape(const Transformer& model, const LayerWeights& w,
                               const PackedTokens& batch);
MoeShape moe_shape(const ModelShape& shape, const Sizes& z);

/// The norm of queries or of keys: heads from `column` of qkv on, whose raw
/// values stand from `raw` on.
struct HeadNorm {
  HeadNormShape shape;
  at::Tensor weight;
  std::int64_t column = 0;
  std::int64_t raw = 0;
};
std::array<HeadNorm, 2> head_norms(const LayerWeights& w,
                                   const ModelShape& shape, const Sizes& z);

/// One product: its rows of the output begin at `column`.
struct Piece {
  at::Tensor weight;
  at::Tensor bias;
  std::int64_t column = 0;
};
std::vector<Piece> qkv_pieces(const LayerWeights& w, const Sizes& z);
std::vector<Piece> mlp_pieces(const LayerWeights& w, const Sizes& z);

/// The stream's [floats] to and from neighbours in a pipeline, when the device
/// is done with them.
void send(const Transformer& model, net::Channel& to, const float* x,
          std::int64_t floats, const char* name);
void receive(const Transformer& model, net::Channel& from, float* x,
             std::int64_t floats, const char* name);

} // namespace troupe::models::stack
