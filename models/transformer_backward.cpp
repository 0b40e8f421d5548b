// The gradient of forward, layer by layer from the top. Norms' outputs and the
// MLP's product are computed again rather than kept: both are cheap.
#include "models/attention.hpp"
#include "models/internal/stack.hpp"
#include "models/linear.hpp"
#include "models/mlp.hpp"
#include "models/norm.hpp"
#include "models/run_context.hpp"
#include "models/transformer.hpp"

#include <ATen/Parallel.h>

#include <algorithm>

namespace troupe::models {

namespace {

constexpr std::int64_t backward_grain_columns = 64; // one cache line of 4

struct BackwardScratch {
  float* act_TI;
  float* norm_TH;
  float* d_norm_TH;
  float* d_context_TX;
  float* d_qkv_TX;
};

struct LayerBackward {
  const Transformer& model;
  const PackedTokens& batch;
  const LayerWeights& w;
  const LayerWeights& g;
  const LayerSaved& s;
  const BackwardScratch& scratch;
  const stack::Sizes z;
  Workspace& workspace;

  NormShape norm_shape() const {
    return {z.tokens, z.hidden, z.eps};
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

  void mlp(float* dx_TH) {
    const std::int64_t width = z.gate_up / 2;
    linear_grad_input(z.tokens, {dx_TH, z.hidden}, w.down,
                      {scratch.act_TI, width});
    swiglu_backward(z.tokens, width, s.gate_up_TX, scratch.act_TI);
    linear_grad_weight(z.tokens, {dx_TH, z.hidden}, {scratch.act_TI, width},
                       g.down);
    bias(dx_TH, z.hidden, g.down_bias);
    rms_norm(norm_shape(), s.middle_TH, w.post_norm.const_data_ptr<float>(),
             scratch.norm_TH);
    products(stack::mlp_pieces(w, z), stack::mlp_pieces(g, z), s.gate_up_TX,
             z.gate_up, scratch.norm_TH, scratch.d_norm_TH);
    rms_norm_backward(norm_shape(), scratch.d_norm_TH, s.middle_TH,
                      w.post_norm.const_data_ptr<float>(), s.rstd2_T, dx_TH,
                      g.post_norm.mutable_data_ptr<float>(), workspace);
  }

  void attend(float* dx_TH) {
    const ModelShape& shape = model.shape;
    linear_grad_input(z.tokens, {dx_TH, z.hidden}, w.o,
                      {scratch.d_context_TX, z.context});
    linear_grad_weight(z.tokens, {dx_TH, z.hidden}, {s.context_TX, z.context},
                       g.o);
    bias(dx_TH, z.hidden, g.o_bias);
    attention_backward(stack::attention_shape(shape, batch), s.qkv_TX,
                       s.context_TX, s.lse_AT, scratch.d_context_TX,
                       scratch.d_qkv_TX);
    rope(
      {z.tokens, z.qkv, shape.num_heads + shape.num_kv_heads, shape.head_dim},
      model.rope, batch.positions_T.data(), scratch.d_qkv_TX, true);
    rms_norm(norm_shape(), s.input_TH, w.input_norm.const_data_ptr<float>(),
             scratch.norm_TH);
    products(stack::qkv_pieces(w, z), stack::qkv_pieces(g, z), scratch.d_qkv_TX,
             z.qkv, scratch.norm_TH, scratch.d_norm_TH);
    rms_norm_backward(norm_shape(), scratch.d_norm_TH, s.input_TH,
                      w.input_norm.const_data_ptr<float>(), s.rstd1_T, dx_TH,
                      g.input_norm.mutable_data_ptr<float>(), workspace);
  }
};

// Each thread owns some columns, so equal ids add up in token order.
void embedding_backward(const PackedTokens& batch, std::int64_t width,
                        const float* dx_TH, const at::Tensor& d_embedding) {
  float* grad = d_embedding.mutable_data_ptr<float>();
  const std::int64_t grain
    = std::max(backward_grain_columns,
               (1 << 16) / std::max<std::int64_t>(1, batch.num_tokens()));
  at::parallel_for(0, width, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::size_t t = 0; t < batch.ids_T.size(); ++t) {
      const float* from = dx_TH + static_cast<std::int64_t>(t) * width;
      float* to = grad + static_cast<std::int64_t>(batch.ids_T[t]) * width;
      for (std::int64_t j = begin; j < end; ++j)
        to[j] += from[j];
    }
  });
}

} // namespace

void backward(const Transformer& model, const PackedTokens& batch,
              const Saved& saved, float* d_hidden_TH, const Weights& grads,
              const RunContext& context, Workspace& workspace) {
  const stack::Sizes z = stack::sizes(model.shape, batch);
  const std::int64_t stream = z.tokens * z.hidden;
  const Workspace::Mark mark = workspace.mark();
  float* dx = workspace.take(stream);
  std::fill_n(dx, stream, 0.0F);
  rms_norm_backward({z.tokens, z.hidden, z.eps}, d_hidden_TH, saved.last_TH,
                    model.weights.final_norm.const_data_ptr<float>(),
                    saved.rstd_T, dx,
                    grads.final_norm.mutable_data_ptr<float>(), workspace);
  const BackwardScratch scratch{workspace.take(z.tokens * z.gate_up / 2),
                                d_hidden_TH, workspace.take(stream),
                                workspace.take(z.tokens * z.context),
                                workspace.take(z.tokens * z.qkv)};
  for (std::size_t i = saved.layers.size(); i-- > 0;) {
    context.check();
    LayerBackward layer{model,
                        batch,
                        model.weights.layers[i],
                        grads.layers[i],
                        saved.layers[i],
                        scratch,
                        z,
                        workspace};
    layer.mlp(dx);
    layer.attend(dx);
  }
  embedding_backward(batch, z.hidden, dx, grads.embedding);
  workspace.rewind(mark);
}

} // namespace troupe::models
