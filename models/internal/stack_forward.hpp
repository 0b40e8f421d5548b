// One batch through the layers of a stage: forward runs it, and backward runs
// it again where activations were not kept.
#pragma once

#include "models/internal/stack.hpp"
#include "models/linear.hpp"
#include "models/tensor_peers.hpp"
#include "models/transformer.hpp"

namespace troupe::models::stack {

/// Buffers that every layer uses anew.
struct LayerScratch {
  float* norm_TH = nullptr;
  float* act_TI = nullptr;
  float* wide_TH = nullptr; ///< the gathered stream, where it is split
};

struct StackForward {
  const Transformer& model;
  const PackedTokens& batch;
  const TensorPeers peers;
  const Sizes z;
  const LayerScratch scratch;

  /// The norm of this peer's rows, then everybody's.
  const float* norm(const float* x_TH, const at::Tensor& weight,
                    float* rstd_T) const;
  /// out = stream + x W^T + bias, the product split over the peers by columns.
  void add_product(ConstRowsView x, const at::Tensor& weight,
                   const at::Tensor& bias, const float* stream_TH,
                   float* out_TH) const;
  /// From the layer's input to the products before its activation: all that
  /// `s` keeps.
  void inner(const LayerWeights& w, const LayerSaved& s) const;
  /// The whole layer.
  void layer(const LayerWeights& w, const LayerSaved& s, float* out_TH) const;
};

} // namespace troupe::models::stack
