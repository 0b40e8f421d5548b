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

/// What is added to the stream: a product, or the norm of it.
struct Branch {
  const Norm& behind;       ///< undefined: none
  float* kept_TH = nullptr; ///< the product, where there is a norm behind
  float* rstd_T = nullptr;  ///< of that norm
  const float* stream_TH = nullptr;
  float* out_TH = nullptr;
};

struct StackForward {
  const Transformer& model;
  const PackedTokens& batch;
  const TensorPeers peers;
  const Sizes z;
  const LayerScratch scratch;
  Workspace& workspace;

  /// The norm of this peer's rows, then everybody's.
  const float* normed(const float* x_TH, const Norm& by, float* rstd_T) const;
  /// From the layer's input to the products before its activation: all that
  /// `s` keeps of most layers.
  void inner(const LayerWeights& w, const LayerSaved& s) const;
  /// Everything that `s` keeps, again.
  void again(const LayerWeights& w, const LayerSaved& s) const;
  /// The whole layer.
  void layer(const LayerWeights& w, const LayerSaved& s, float* out_TH) const;

private:
  void attend(const LayerWeights& w, const LayerSaved& s) const;
  void finish(const LayerWeights& w, const LayerSaved& s, float* out_TH) const;
  void experts(const LayerWeights& w, const LayerSaved& s,
               const Branch& branch) const;
  /// out = stream + product or stream + norm(product), the product split over
  /// the peers by columns. `product(target, accumulate)` computes this peer's
  /// part.
  template <class Product>
  void add(const Branch& branch, const Product& product) const;
  void add_product(const Branch& branch, ConstRowsView x,
                   const at::Tensor& weight, const at::Tensor& bias) const;
};

} // namespace troupe::models::stack
