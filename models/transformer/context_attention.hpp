// Attention of a cp rank, whose tokens see keys of other ranks
// (docs/context_parallelism.md): the rotated keys and values of all ranks'
// tokens are gathered in blocks of one size, and kernels attend over pieces of
// sequences. Backward gathers them again, since they are the largest buffer of
// a layer, and sums each rank's gradients of all keys where the keys came from.
//
// T tokens of this rank, K keys that they see, Y = 2 G D columns of a key and
// its value.
#pragma once

#include "models/kernels/attention_pieces.hpp"
#include "models/parallel/tensor_peers.hpp"
#include "models/transformer/stack.hpp"
#include "models/transformer/transformer.hpp"

#include <cstdint>

namespace troupe::models {

/// The attention of one pass; every rank of the group makes the same calls,
/// also one without tokens.
struct ContextAttention {
  const Transformer& model;
  const PackedTokens& batch; ///< with a context
  const TensorPeers& peers;  ///< with a cp group
  const stack::Sizes& z;
  Workspace& workspace;

  /// Computes the layer's context and log-sum-exp from its qkv.
  void forward(const LayerWeights& w, const LayerSaved& s) const;
  /// Overwrites d qkv, given d context.
  void backward(const LayerWeights& w, const LayerSaved& s,
                ConstTypedPtr d_context_TX, TypedPtr d_qkv_TX) const;

private:
  std::int64_t columns() const { ///< Y
    return 2 * z.kv;
  }
  std::int64_t block_size() const {
    return batch.context->block * columns();
  }
  RowList sources() const {
    return {batch.context->sources_K, columns()};
  }
  TypedPtr take_keys() const;
  TypedPtr take_blocks() const;
  /// Fills keys [K, Y] of all ranks' tokens.
  void gather(ConstTypedPtr qkv_TX, TypedPtr keys_KY) const;
  /// Adds up the ranks' gradients of keys, in the columns of k and v of d qkv.
  void sum(ConstTypedPtr d_keys_KY, TypedPtr d_qkv_TX) const;
};

} // namespace troupe::models
