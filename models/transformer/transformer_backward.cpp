// The gradient of forward, layer by layer from the top. Norms' outputs and the
// MLP's product are recomputed rather than kept: both are cheap.
#include "models/parallel/run_context.hpp"
#include "models/transformer/balance_loss.hpp"
#include "models/transformer/context_attention.hpp"
#include "models/transformer/device_dispatch.hpp"
#include "models/transformer/inputs_backward.hpp"
#include "models/transformer/stack_forward.hpp"
#include "models/transformer/transformer.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <vector>

namespace troupe::models {

namespace {

struct BackwardScratch {
  TypedPtr act_TI;
  TypedPtr norm_TH;
  TypedPtr d_norm_TH; // of this rank's rows
  TypedPtr d_wide_TH; // partial sums of all rows; d_norm_TH in plain form
  TypedPtr wide_TH;   // the gathered stream, if it is split
  TypedPtr d_context_TX;
  TypedPtr d_qkv_TX;
  float* unused_H;      // [2H] norms' gradients that another rank counts
  TypedPtr d_branch_TH; // of a branch with a norm after it
  TypedPtr d_input_TH;  // of the MLP's input where attention reads it too
};

// Returns where a norm's gradients go: in plain form all ranks compute the
// same, and the first one counts them; nobody reads those of a frozen norm.
NormGrads counted_grads(const Norm& grads, const TensorPeers& peers,
                        const BackwardScratch& scratch, const stack::Sizes& z) {
  if (peers.adds_stream() && grads.defined())
    return grads.grads();
  return {scratch.unused_H, scratch.unused_H + z.hidden};
}

struct LayerBackward {
  const Transformer& model;
  const PackedTokens& batch;
  const LayerWeights& w;
  const LayerWeights& g;
  const LayerSaved& s;
  const BackwardScratch& scratch;
  const TensorPeers peers;
  const stack::Sizes z;
  Workspace& workspace;

  ConstTypedPtr gather(ConstTypedPtr stream) const {
    return peers.gather(stream, scratch.wide_TH, z.tokens, z.hidden,
                        "gather tokens");
  }
  // Recomputes the input of a layer's products.
  ConstTypedPtr normed(ConstTypedPtr x_TH, const Norm& by) const {
    if (!by.defined())
      return gather(x_TH);
    model.backend->norm(z.norm_shape(), x_TH, by.weights(), scratch.norm_TH,
                        nullptr);
    return gather(scratch.norm_TH);
  }
  // Propagates the gradient of a norm's output, partial sums on all ranks, to
  // the stream.
  void input_backward(ConstTypedPtr x_TH, const Norm& by, const float* rstd_T,
                      const Norm& grads, TypedPtr dx_TH) {
    peers.to_stream(scratch.d_wide_TH, scratch.d_norm_TH, z.tokens, z.hidden,
                    "sum of input gradients");
    if (!by.defined())
      return model.backend->add(dx_TH, scratch.d_norm_TH, dx_TH,
                                z.own.count * z.hidden);
    model.backend->norm_backward(
      z.norm_shape(), scratch.d_norm_TH, x_TH, by.weights(), rstd_T, dx_TH,
      counted_grads(grads, peers, scratch, z), workspace);
  }
  // Returns the gradient of a branch, gathered, from that of the stream that it
  // was added to.
  ConstTypedPtr branch_gradient(ConstTypedPtr dx_TH, const Norm& behind,
                                ConstTypedPtr kept_TH, const float* rstd_T,
                                const Norm& grads) {
    if (!model.shape.changes_branches())
      return gather(dx_TH);
    const std::int64_t count = z.own.count * z.hidden;
    const auto factor = static_cast<float>(model.shape.multipliers.residual);
    const TypedPtr d_branch_TH = scratch.d_branch_TH;
    if (behind.defined()) {
      model.backend->fill(d_branch_TH, count, 0.0F);
      model.backend->norm_backward(
        z.norm_shape(), dx_TH, kept_TH, behind.weights(), rstd_T, d_branch_TH,
        counted_grads(grads, peers, scratch, z), workspace);
    } else {
      model.backend->copy(dx_TH, d_branch_TH, count);
    }
    if (factor != 1.0F)
      model.backend->scale(d_branch_TH, count, factor);
    return gather(d_branch_TH);
  }
  void bias(ConstTypedPtr dy, std::int64_t stride, const at::Tensor& d_bias) {
    if (d_bias.defined())
      model.backend->add_column_sums(dy, z.tokens, d_bias.size(0), stride,
                                     d_bias.mutable_data_ptr<float>(),
                                     workspace);
  }
  // Computes gradients of the products of one input: weights', biases', the
  // input's. Frozen weights have no pieces with gradients.
  void products(const std::vector<stack::Piece>& weights,
                const std::vector<stack::Piece>& grads, ConstRowsView dy,
                ConstTypedPtr x, TypedPtr dx) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const ConstRowsView dy_i{dy.data + weights[i].column, dy.stride};
      const stack::Piece none;
      const stack::Piece& grad = i < grads.size() ? grads[i] : none;
      linear_grad_weight(*model.backend, z.rows(), dy_i, {x, z.hidden},
                         grad.weight);
      bias(dy_i.data, dy_i.stride, grad.bias);
      linear_grad_input(*model.backend, z.rows(), dy_i, weights[i].weight,
                        {dx, z.hidden}, i > 0);
    }
  }
  // Computes the same for their adapters.
  void adapters(const std::vector<stack::AdapterPiece>& pieces,
                ConstRowsView dy, ConstTypedPtr x, TypedPtr dx) {
    const AdapterMath math = stack::adapter_math(model, z, workspace);
    for (const stack::AdapterPiece& piece : pieces) {
      const ConstRowsView dy_i{dy.data + piece.column, dy.stride};
      math.weight_gradients(piece.adapter, piece.grads, dy_i, {x, z.hidden});
      math.input_gradient(piece.adapter, dy_i, {dx, z.hidden});
    }
  }
  // Computes the gradient of the input of a product that ends a branch.
  void end_input(ConstTypedPtr dy_TH, const at::Tensor& weight,
                 const Adapter& adapter, RowsView dx) {
    linear_grad_input(*model.backend, z.rows(), {dy_TH, z.hidden}, weight, dx);
    if (adapter.defined())
      stack::adapter_math(model, z, workspace)
        .input_gradient(adapter, {dy_TH, z.hidden}, dx);
  }
  // Computes those of its weights.
  void end_weights(ConstTypedPtr dy_TH, ConstRowsView x,
                   const at::Tensor& d_weight, const Adapter& adapter,
                   const Adapter& d_adapter) {
    linear_grad_weight(*model.backend, z.rows(), {dy_TH, z.hidden}, x,
                       d_weight);
    if (adapter.defined())
      stack::adapter_math(model, z, workspace)
        .weight_gradients(adapter, d_adapter, {dy_TH, z.hidden}, x);
  }

  // A bias that all ranks hold is counted by the first one.
  void shared_bias(ConstTypedPtr dy, const at::Tensor& d_bias) {
    if (peers.first())
      bias(dy, z.hidden, d_bias);
  }

  void mlp(TypedPtr dx_TH) {
    const ConstTypedPtr dy_TH = branch_gradient(
      dx_TH, w.behind_mlp, s.behind2_TH, s.rstd4_T, g.behind_mlp);
    if (w.has_experts())
      experts(dy_TH);
    else
      dense(dy_TH);
    TypedPtr d_input_TH = dx_TH;
    if (model.shape.parallel_residual) { // attention needs dx as it is
      d_input_TH = scratch.d_input_TH;
      model.backend->fill(d_input_TH, z.own.count * z.hidden, 0.0F);
    }
    input_backward(stack::mlp_input(model.shape, s), w.post_norm, s.rstd2_T,
                   g.post_norm, d_input_TH);
  }

  void dense(ConstTypedPtr dy_TH) {
    const MlpShape unit = z.unit(w);
    const std::int64_t width = unit.width;
    end_input(dy_TH, w.down, w.adapters.down, {scratch.act_TI, width});
    model.backend->mlp_unit_backward(unit, s.gate_up_TX, scratch.act_TI);
    end_weights(dy_TH, {scratch.act_TI, width}, g.down, w.adapters.down,
                g.adapters.down);
    shared_bias(dy_TH, g.down_bias);
    const ConstRowsView dy{s.gate_up_TX, unit.columns()};
    const ConstTypedPtr x
      = normed(stack::mlp_input(model.shape, s), w.post_norm);
    products(stack::mlp_pieces(w, unit), stack::mlp_pieces(g, unit), dy, x,
             scratch.d_wide_TH);
    adapters(stack::mlp_adapters(w.adapters, g.adapters, unit), dy, x,
             scratch.d_wide_TH);
  }

  void experts(ConstTypedPtr dy_TH) {
    const Workspace::Mark mark = workspace.mark();
    const TypedPtr dy_copy
      = workspace.take(z.tokens * z.hidden, z.types.storage);
    model.backend->copy(dy_TH, dy_copy, z.tokens * z.hidden);
    if (w.has_mlp())
      dense(dy_copy);
    else
      model.backend->fill(scratch.d_wide_TH, z.tokens * z.hidden, 0.0F);
    const ConstTypedPtr x_TH
      = normed(stack::mlp_input(model.shape, s), w.post_norm);
    const MoeShape moe = stack::moe_shape(model, w.moe, batch, z, peers);
    const Routing& routing = s.experts->routing;
    std::function<void(float*)> balance;
    if (batch.balance_weight > 0 && peers.first()) {
      read_choices(*model.backend, std::span(&s.experts, 1));
      balance = [&](float* d_logits_TE) {
        balance_backward(moe.router, routing, batch, d_logits_TE);
      };
    }
    moe_backward(moe, w.moe, x_TH, *s.experts, dy_copy, g.moe,
                 scratch.d_wide_TH, workspace, balance);
    if (g.moe.correction.defined() && peers.first())
      moe_add_load_excess(moe, *s.experts, batch.copies_T(),
                          g.moe.correction.mutable_data_ptr<float>());
    workspace.rewind(mark);
  }

  // Propagates gradients of rotated and normed queries and keys to raw ones, in
  // d_qkv.
  void heads_backward() {
    const ModelShape& shape = model.shape;
    if (const RopeTable* rope = model.rope.of(w.positions.rope))
      model.backend->rope(
        {z.tokens, z.qkv, shape.num_heads + shape.num_kv_heads, shape.head_dim},
        *rope, batch.positions_T, scratch.d_qkv_TX, /*backwards=*/true);
    if (w.qk_norms.q.defined())
      qk_norms_backward();
  }

  // Sets the sums that norms of all heads together divide by, over tp ranks.
  void sum_heads(std::array<stack::QkNorm, 2>& norms) {
    float* sums = workspace.take(4 * z.tokens);
    for (std::size_t i = 0; i < norms.size(); ++i) {
      QkNormShape& shape = norms[i].shape;
      const ConstTypedPtr raw_TX = s.raw_qk_TX + norms[i].raw;
      float* squares_T = sums + static_cast<std::int64_t>(i) * z.tokens;
      float* dots_T = squares_T + 2 * z.tokens;
      model.backend->head_sums(shape,
                               {raw_TX, raw_TX, shape.head_dim, shape.head_dim},
                               nullptr, squares_T);
      model.backend->head_sums(
        shape,
        {scratch.d_qkv_TX + norms[i].column, raw_TX, z.qkv, shape.head_dim},
        norms[i].weight.const_data_ptr<float>(), dots_T);
      shape.sums = {squares_T, dots_T, shape.head_dim * peers.size()};
    }
    peers.sum(sums, 4 * z.tokens, "sums over heads");
  }

  void qk_norms_backward() {
    const Workspace::Mark mark = workspace.mark();
    auto weights = stack::qk_norms(w, model.shape, z);
    const auto grads = stack::qk_norms(g, model.shape, z);
    if (model.shape.qk_norm == QkNormScope::all_heads)
      sum_heads(weights);
    for (std::size_t i = 0; i < weights.size(); ++i)
      model.backend->qk_norm_backward(
        weights[i].shape, weights[i].weight.const_data_ptr<float>(),
        s.raw_qk_TX + weights[i].raw, scratch.d_qkv_TX + weights[i].column,
        grads[i].weight.defined() ? grads[i].weight.mutable_data_ptr<float>()
                                  : scratch.unused_H,
        workspace);
    workspace.rewind(mark);
  }

  void attention() {
    if (batch.context)
      ContextAttention{model, batch, peers, z, workspace}.backward(
        w, s, scratch.d_context_TX, scratch.d_qkv_TX);
    else
      model.backend->attention_backward(stack::attention_shape(model, w, batch),
                                        s.qkv_TX, s.context_TX, s.lse_AT,
                                        scratch.d_context_TX, scratch.d_qkv_TX);
  }

  void attend(TypedPtr dx_TH) {
    const ConstTypedPtr dy_TH = branch_gradient(
      dx_TH, w.behind_attention, s.behind1_TH, s.rstd3_T, g.behind_attention);
    end_input(dy_TH, w.o, w.adapters.o, {scratch.d_context_TX, z.context});
    end_weights(dy_TH, {s.context_TX, z.context}, g.o, w.adapters.o,
                g.adapters.o);
    shared_bias(dy_TH, g.o_bias);
    attention();
    heads_backward();
    const ConstRowsView dy{scratch.d_qkv_TX, z.qkv};
    const ConstTypedPtr x = normed(s.input_TH, w.input_norm);
    products(stack::qkv_pieces(w, z), stack::qkv_pieces(g, z), dy, x,
             scratch.d_wide_TH);
    adapters(stack::qkv_adapters(w.adapters, g.adapters, z), dy, x,
             scratch.d_wide_TH);
    input_backward(s.input_TH, w.input_norm, s.rstd1_T, g.input_norm, dx_TH);
    if (model.shape.parallel_residual)
      model.backend->add(dx_TH, scratch.d_input_TH, dx_TH,
                         z.own.count * z.hidden);
  }
};

BackwardScratch backward_scratch(const stack::Sizes& z,
                                 const TensorPeers& peers,
                                 const ModelShape& shape, TypedPtr d_hidden_TH,
                                 Workspace& workspace) {
  const bool split = peers.split();
  BackwardScratch s{};
  s.act_TI = workspace.take(z.tokens * z.widest.width, z.types.storage);
  s.norm_TH = split || !d_hidden_TH ? workspace.take(z.stream, z.types.storage)
                                    : d_hidden_TH;
  s.d_norm_TH = workspace.take(z.stream, z.types.storage);
  s.d_wide_TH
    = split ? workspace.take(z.gathered, z.types.storage) : s.d_norm_TH;
  s.wide_TH = split ? workspace.take(z.gathered, z.types.storage) : TypedPtr{};
  s.d_context_TX = workspace.take(z.tokens * z.context, z.types.storage);
  s.d_qkv_TX = workspace.take(z.tokens * z.qkv, z.types.storage);
  const bool has_wide_norms = shape.qk_norm == QkNormScope::all_heads;
  s.unused_H = workspace.take(
    2 * (has_wide_norms ? std::max(z.hidden, z.context) : z.hidden));
  s.d_branch_TH
    = workspace.take(shape.changes_branches() ? z.stream : 0, z.types.storage);
  s.d_input_TH
    = workspace.take(shape.parallel_residual ? z.stream : 0, z.types.storage);
  return s;
}

} // namespace

void backward(const Transformer& model, const PackedTokens& batch,
              const Saved& saved, TypedPtr d_hidden_TH, const Weights& grads,
              const RunContext& context, Workspace& workspace) {
  TensorPeers peers(context, *model.backend, model.split_tokens);
  const stack::Sizes z = stack::sizes(model, batch, peers);
  const Workspace::Mark mark = workspace.mark();
  const TypedPtr dx = workspace.take(z.stream, z.types.storage);
  peers.use_streams(dx.data());
  const BackwardScratch scratch
    = backward_scratch(z, peers, model.shape, d_hidden_TH, workspace);
  if (context.groups.last_stage()) {
    peers.to_stream(d_hidden_TH, scratch.norm_TH, z.tokens, z.hidden,
                    "sum of outputs");
    model.backend->fill(dx, z.stream, 0.0F);
    model.backend->norm_backward(
      z.norm_shape(), scratch.norm_TH, saved.last_TH,
      model.weights.final_norm.weights(), saved.rstd_T, dx,
      counted_grads(grads.final_norm, peers, scratch, z), workspace);
    model.gate->after_backward(
      model.first_layer + static_cast<std::int64_t>(saved.layers.size()));
  } else {
    stack::receive(*model.backend, *context.groups.next, dx, z.stream,
                   "activation gradients");
  }
  const stack::LayerScratch buffers{scratch.norm_TH, scratch.act_TI,
                                    scratch.wide_TH};
  const stack::StackForward again{model, batch, peers, z, buffers, workspace};
  for (std::size_t i = saved.layers.size(); i-- > 0;) {
    context.check();
    const std::int64_t number
      = model.first_layer + static_cast<std::int64_t>(i);
    model.gate->before_backward(number);
    const Workspace::Mark before = workspace.mark();
    if (saved.recompute)
      again.again(model.weights.layers[i], saved.layers[i]);
    LayerBackward layer{model,
                        batch,
                        model.weights.layers[i],
                        grads.layers[i],
                        saved.layers[i],
                        scratch,
                        peers,
                        z,
                        workspace};
    layer.mlp(dx);
    layer.attend(dx);
    workspace.rewind(before);
    model.gate->after_backward(number);
  }
  if (context.groups.first_stage()) {
    inputs_backward(
      model, batch, peers,
      peers.gather(dx, scratch.wide_TH, z.tokens, z.hidden, "gather tokens"),
      grads);
  } else {
    stack::send(*model.backend, *context.groups.previous, dx, z.stream,
                "activation gradients");
  }
  workspace.rewind(mark);
}

} // namespace troupe::models
