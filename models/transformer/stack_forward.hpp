// One batch through the layers of a stage: run by forward, and run again by
// backward if activations were not kept.
#pragma once

#include "models/kernels/linear.hpp"
#include "models/parallel/tensor_peers.hpp"
#include "models/transformer/stack.hpp"
#include "models/transformer/transformer.hpp"

namespace troupe::models::stack {

/// Buffers that every layer reuses.
struct LayerScratch {
  TypedPtr norm_TH;
  TypedPtr act_TI;
  TypedPtr wide_TH; ///< the gathered stream, if it is split
};

/// An addition to the stream: a product, or its norm.
struct Branch {
  const Norm& behind;      ///< undefined: none
  TypedPtr kept_TH;        ///< the product, if a norm follows
  float* rstd_T = nullptr; ///< of that norm
  ConstTypedPtr stream_TH;
  TypedPtr out_TH;
};

/// A product that ends a branch.
struct Product {
  const at::Tensor& weight;
  const at::Tensor& bias;
  const Adapter& adapter;
};

struct StackForward {
  const Transformer& model;
  const PackedTokens& batch;
  const TensorPeers peers;
  const Sizes z;
  const LayerScratch scratch;
  Workspace& workspace;

  /// Returns the norm of this rank's rows, or the rows themselves where there
  /// is none, gathered over the tp group.
  ConstTypedPtr normed(ConstTypedPtr x_TH, const Norm& by, float* rstd_T) const;
  /// Computes from the layer's input to the choice of experts and the products
  /// before the MLP's activation: all that `s` keeps of most layers.
  void inner(const LayerWeights& w, const LayerSaved& s) const;
  /// Recomputes everything that `s` keeps.
  void again(const LayerWeights& w, const LayerSaved& s) const;
  /// Computes the whole layer.
  void layer(const LayerWeights& w, const LayerSaved& s, TypedPtr out_TH) const;

private:
  void norm_heads(const LayerWeights& w, const LayerSaved& s) const;
  void attend(const LayerWeights& w, const LayerSaved& s) const;
  void finish(const LayerWeights& w, const LayerSaved& s,
              TypedPtr out_TH) const;
  /// Returns the rows of the last call of `normed`, which nothing has
  /// overwritten since.
  ConstTypedPtr normed_before(ConstTypedPtr x_TH, const Norm& by) const;
  /// Sends tokens to experts, and takes the room for what these keep.
  void choose_experts(const LayerWeights& w, const LayerSaved& s,
                      ConstTypedPtr normed_TH) const;
  /// Computes the outputs of a layer's experts, and of its MLP for all tokens.
  void experts(const LayerWeights& w, const LayerSaved& s,
               const Branch& branch) const;
  /// Computes out = stream + product or stream + norm(product), where the
  /// product is row-parallel over the tp group. `product(target, accumulate)`
  /// computes this rank's part.
  template <class Part>
  void add(const Branch& branch, const Part& product) const;
  void add_product(const Branch& branch, ConstRowsView x,
                   const Product& product) const;
  /// Computes this rank's part of a product that ends a branch.
  void end_product(ConstRowsView x, const Product& product, TypedPtr out_TH,
                   bool accumulate) const;
  /// Adds adapters' outputs to products y of one input.
  void add_adapters(const std::vector<AdapterPiece>& adapters, ConstRowsView x,
                    RowsView y) const;
};

} // namespace troupe::models::stack
