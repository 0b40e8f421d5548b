// The gradient of forward, layer by layer from the top. Norms' outputs and the
// MLP's product are computed again rather than kept: both are cheap.
#include "models/attention.hpp"
#include "models/internal/stack_forward.hpp"
#include "models/mlp.hpp"
#include "models/norm.hpp"
#include "models/run_context.hpp"
#include "models/transformer.hpp"
#include "net/channel.hpp"

#include <ATen/Parallel.h>

#include <algorithm>

namespace troupe::models {

namespace {

constexpr std::int64_t backward_grain_columns = 64; // one cache line of 4

struct BackwardScratch {
  float* act_TI;
  float* norm_TH;
  float* d_norm_TH; // of this peer's rows
  float* d_wide_TH; // partial sums of all rows; d_norm_TH in plain form
  float* wide_TH;   // the gathered stream, where it is split
  float* d_context_TX;
  float* d_qkv_TX;
  float* unused_H; // norms' gradients that another peer counts
};

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

  NormShape norm_shape() const {
    return {z.own.count, z.hidden, z.eps};
  }
  const float* gather(const float* stream) const {
    return peers.gather(stream, scratch.wide_TH, z.tokens, z.hidden,
                        "gather tokens");
  }
  // The input of a layer's products, computed again.
  const float* norm(const float* x_TH, const at::Tensor& weight) const {
    rms_norm(norm_shape(), x_TH, weight.const_data_ptr<float>(),
             scratch.norm_TH);
    return gather(scratch.norm_TH);
  }
  // From the gradient of a norm's output, in parts on all peers, to the stream.
  void norm_backward(const float* x_TH, const at::Tensor& weight,
                     const float* rstd_T, const at::Tensor& d_weight,
                     float* dx_TH) {
    peers.to_stream(scratch.d_wide_TH, scratch.d_norm_TH, z.tokens, z.hidden,
                    "sum of input gradients");
    rms_norm_backward(norm_shape(), scratch.d_norm_TH, x_TH,
                      weight.const_data_ptr<float>(), rstd_T, dx_TH,
                      peers.adds_stream() ? d_weight.mutable_data_ptr<float>()
                                          : scratch.unused_H,
                      workspace);
  }
  void bias(const float* dy, std::int64_t stride, const at::Tensor& d_bias) {
    if (d_bias.defined())
      add_column_sums(dy, z.tokens, d_bias.size(0), stride,
                      d_bias.mutable_data_ptr<float>(), workspace);
  }
  // Gradients of products of one input: weights', biases', the input's.
  void products(const std::vector<stack::Piece>& weights,
                const std::vector<stack::Piece>& grads, const float* dy,
                std::int64_t stride, const float* x, float* dx) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const float* dy_i = dy + weights[i].column;
      linear_grad_weight(z.tokens, {dy_i, stride}, {x, z.hidden},
                         grads[i].weight);
      bias(dy_i, stride, grads[i].bias);
      linear_grad_input(z.tokens, {dy_i, stride}, weights[i].weight,
                        {dx, z.hidden}, i > 0);
    }
  }

  // A bias that all peers hold is the first one's to count.
  void shared_bias(const float* dy, const at::Tensor& d_bias) {
    if (peers.first())
      bias(dy, z.hidden, d_bias);
  }

  void mlp(float* dx_TH) {
    const std::int64_t width = z.gate_up / 2;
    const float* dy_TH = gather(dx_TH);
    linear_grad_input(z.tokens, {dy_TH, z.hidden}, w.down,
                      {scratch.act_TI, width});
    swiglu_backward(z.tokens, width, s.gate_up_TX, scratch.act_TI);
    linear_grad_weight(z.tokens, {dy_TH, z.hidden}, {scratch.act_TI, width},
                       g.down);
    shared_bias(dy_TH, g.down_bias);
    products(stack::mlp_pieces(w, z), stack::mlp_pieces(g, z), s.gate_up_TX,
             z.gate_up, norm(s.middle_TH, w.post_norm), scratch.d_wide_TH);
    norm_backward(s.middle_TH, w.post_norm, s.rstd2_T, g.post_norm, dx_TH);
  }

  void attend(float* dx_TH) {
    const ModelShape& shape = model.shape;
    const float* dy_TH = gather(dx_TH);
    linear_grad_input(z.tokens, {dy_TH, z.hidden}, w.o,
                      {scratch.d_context_TX, z.context});
    linear_grad_weight(z.tokens, {dy_TH, z.hidden}, {s.context_TX, z.context},
                       g.o);
    shared_bias(dy_TH, g.o_bias);
    attention_backward(stack::attention_shape(shape, batch), s.qkv_TX,
                       s.context_TX, s.lse_AT, scratch.d_context_TX,
                       scratch.d_qkv_TX);
    rope(
      {z.tokens, z.qkv, shape.num_heads + shape.num_kv_heads, shape.head_dim},
      model.rope, batch.positions_T.data(), scratch.d_qkv_TX, true);
    products(stack::qkv_pieces(w, z), stack::qkv_pieces(g, z), scratch.d_qkv_TX,
             z.qkv, norm(s.input_TH, w.input_norm), scratch.d_wide_TH);
    norm_backward(s.input_TH, w.input_norm, s.rstd1_T, g.input_norm, dx_TH);
  }
};

// Each thread owns some columns, so equal ids add up in token order. Ids
// outside first_token .. are another tensor peer's.
void embedding_backward(const PackedTokens& batch, std::int64_t width,
                        const float* dx_TH, const Weights& grads) {
  float* grad = grads.embedding.mutable_data_ptr<float>();
  const std::int64_t rows = grads.embedding.size(0);
  const std::int64_t grain
    = std::max(backward_grain_columns,
               (1 << 16) / std::max<std::int64_t>(1, batch.num_tokens()));
  at::parallel_for(0, width, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::size_t t = 0; t < batch.ids_T.size(); ++t) {
      const std::int64_t row = batch.ids_T[t] - grads.first_token;
      if (row < 0 || row >= rows)
        continue;
      const float* from = dx_TH + static_cast<std::int64_t>(t) * width;
      float* to = grad + row * width;
      for (std::int64_t j = begin; j < end; ++j)
        to[j] += from[j];
    }
  });
}

BackwardScratch backward_scratch(const stack::Sizes& z,
                                 const TensorPeers& peers, float* d_hidden_TH,
                                 Workspace& workspace) {
  const bool split = peers.split();
  BackwardScratch s{};
  s.act_TI = workspace.take(z.tokens * z.gate_up / 2);
  s.norm_TH
    = split || d_hidden_TH == nullptr ? workspace.take(z.stream) : d_hidden_TH;
  s.d_norm_TH = workspace.take(z.stream);
  s.d_wide_TH = split ? workspace.take(z.gathered) : s.d_norm_TH;
  s.wide_TH = split ? workspace.take(z.gathered) : nullptr;
  s.d_context_TX = workspace.take(z.tokens * z.context);
  s.d_qkv_TX = workspace.take(z.tokens * z.qkv);
  s.unused_H = workspace.take(z.hidden);
  return s;
}

} // namespace

void backward(const Transformer& model, const PackedTokens& batch,
              const Saved& saved, float* d_hidden_TH, const Weights& grads,
              const RunContext& context, Workspace& workspace) {
  const TensorPeers peers(context, model.split_tokens);
  const stack::Sizes z = stack::sizes(model.shape, batch, peers);
  const Workspace::Mark mark = workspace.mark();
  float* dx = workspace.take(z.stream);
  const BackwardScratch scratch
    = backward_scratch(z, peers, d_hidden_TH, workspace);
  const auto bytes = static_cast<std::size_t>(z.stream) * sizeof(float);
  if (context.groups.last_stage()) {
    peers.to_stream(d_hidden_TH, scratch.norm_TH, z.tokens, z.hidden,
                    "sum of outputs");
    std::fill_n(dx, z.stream, 0.0F);
    rms_norm_backward(
      {z.own.count, z.hidden, z.eps}, scratch.norm_TH, saved.last_TH,
      model.weights.final_norm.const_data_ptr<float>(), saved.rstd_T, dx,
      peers.adds_stream() ? grads.final_norm.mutable_data_ptr<float>()
                          : scratch.unused_H,
      workspace);
  } else {
    context.groups.next->receive(dx, bytes, "activation gradients");
  }
  const stack::StackForward again{
    model, batch, peers, z, {scratch.norm_TH, scratch.act_TI, scratch.wide_TH}};
  for (std::size_t i = saved.layers.size(); i-- > 0;) {
    context.check();
    const std::int64_t number
      = model.first_layer + static_cast<std::int64_t>(i);
    if (model.gate != nullptr)
      model.gate->before_backward(number);
    if (saved.recompute)
      again.inner(model.weights.layers[i], saved.layers[i]);
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
    if (model.gate != nullptr)
      model.gate->after_backward(number);
  }
  if (context.groups.first_stage()) {
    const float* d_rows
      = peers.gather(dx, scratch.wide_TH, z.tokens, z.hidden, "gather tokens");
    embedding_backward(batch, z.hidden, d_rows, grads);
  } else {
    context.groups.previous->send(dx, bytes, "activation gradients");
  }
  workspace.rewind(mark);
}

} // namespace troupe::models
