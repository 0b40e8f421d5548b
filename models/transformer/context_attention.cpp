#include "models/transformer/context_attention.hpp"

#include "models/parallel/ordered_collectives.hpp"
#include "net/collectives/collectives.hpp"

namespace troupe::models {

TypedPtr ContextAttention::take_keys() const {
  return workspace.take(batch.context->keys() * columns(), z.types.storage);
}

TypedPtr ContextAttention::take_blocks() const {
  return workspace.take(block_size() * peers.context_group()->size(),
                        z.types.storage);
}

void ContextAttention::gather(ConstTypedPtr qkv_TX, TypedPtr keys_KY) const {
  const Workspace::Mark mark = workspace.mark();
  const TypedPtr blocks = take_blocks();
  const TypedPtr own = own_row(*peers.context_group(), blocks, block_size());
  if (z.tokens > 0)
    model.backend->copy_box({.sizes = {1, 1, z.tokens, columns()},
                             .from_strides = {0, 0, z.qkv},
                             .to_strides = {0, 0, columns()}},
                            qkv_TX + z.context, own);
  gather_in_order(*peers.context_group(), *model.backend, blocks, block_size(),
                  "gather keys");
  if (z.tokens > 0)
    model.backend->gather_rows(sources(), blocks, keys_KY);
  workspace.rewind(mark);
}

void ContextAttention::sum(ConstTypedPtr d_keys_KY, TypedPtr d_qkv_TX) const {
  const Workspace::Mark mark = workspace.mark();
  const TypedPtr blocks = take_blocks();
  const TypedPtr own = own_row(*peers.context_group(), blocks, block_size());
  model.backend->fill(blocks, block_size() * peers.context_group()->size(),
                      0.0F);
  if (z.tokens > 0)
    model.backend->scatter_rows(sources(), d_keys_KY, blocks);
  scatter_sum_in_order(*peers.context_group(), *model.backend, blocks,
                       block_size(), "sum of key gradients");
  if (z.tokens > 0)
    model.backend->copy_box({.sizes = {1, 1, z.tokens, columns()},
                             .from_strides = {0, 0, columns()},
                             .to_strides = {0, 0, z.qkv}},
                            own, d_qkv_TX + z.context);
  workspace.rewind(mark);
}

void ContextAttention::forward(const LayerWeights& w,
                               const LayerSaved& s) const {
  const Workspace::Mark mark = workspace.mark();
  const TypedPtr keys_KY = take_keys();
  gather(s.qkv_TX, keys_KY);
  if (z.tokens > 0)
    model.backend->piece_attention(stack::piece_shape(model, w, batch),
                                   {s.qkv_TX, keys_KY}, s.context_TX, s.lse_AT);
  workspace.rewind(mark);
}

void ContextAttention::backward(const LayerWeights& w, const LayerSaved& s,
                                ConstTypedPtr d_context_TX,
                                TypedPtr d_qkv_TX) const {
  const Workspace::Mark mark = workspace.mark();
  const TypedPtr keys_KY = take_keys();
  const TypedPtr d_keys_KY = take_keys();
  gather(s.qkv_TX, keys_KY);
  if (z.tokens > 0)
    model.backend->piece_attention_backward(
      stack::piece_shape(model, w, batch), {s.qkv_TX, keys_KY},
      {s.context_TX, s.lse_AT}, d_context_TX, {d_qkv_TX, d_keys_KY});
  sum(d_keys_KY, d_qkv_TX);
  workspace.rewind(mark);
}

} // namespace troupe::models
