#include "models/internal/stack_forward.hpp"

#include "models/attention.hpp"
#include "models/mlp.hpp"
#include "models/norm.hpp"

#include <algorithm>

namespace troupe::models::stack {

const float* StackForward::norm(const float* x_TH, const at::Tensor& weight,
                                float* rstd_T) const {
  rms_norm({z.own.count, z.hidden, z.eps}, x_TH, weight.const_data_ptr<float>(),
           scratch.norm_TH, rstd_T);
  return peers.gather(scratch.norm_TH, scratch.wide_TH, z.tokens, z.hidden,
                      "gather tokens");
}

void StackForward::add_product(ConstRowsView x, const at::Tensor& weight,
                               const at::Tensor& bias, const float* stream_TH,
                               float* out_TH) const {
  float* partial = out_TH;
  if (peers.split()) {
    partial = scratch.wide_TH;
    std::fill_n(partial, z.gathered, 0.0F);
  }
  if (peers.adds_stream())
    copy(stream_TH, partial + z.own.first * z.hidden, z.own.count * z.hidden);
  linear(z.tokens, x, weight, peers.first() ? bias : at::Tensor{},
         {partial, z.hidden}, peers.adds_stream());
  peers.to_stream(partial, out_TH, z.tokens, z.hidden, "sum of products");
}

void StackForward::inner(const LayerWeights& w, const LayerSaved& s) const {
  const ModelShape& shape = model.shape;
  const float* normed_TH = norm(s.input_TH, w.input_norm, s.rstd1_T);
  for (const Piece& p : qkv_pieces(w, z))
    linear(z.tokens, {normed_TH, z.hidden}, p.weight, p.bias,
           {s.qkv_TX + p.column, z.qkv});
  rope({z.tokens, z.qkv, shape.num_heads + shape.num_kv_heads, shape.head_dim},
       model.rope, batch.positions_T.data(), s.qkv_TX);
  attention(attention_shape(shape, batch), s.qkv_TX, s.context_TX, s.lse_AT);
  add_product({s.context_TX, z.context}, w.o, w.o_bias, s.input_TH,
              s.middle_TH);
  normed_TH = norm(s.middle_TH, w.post_norm, s.rstd2_T);
  for (const Piece& p : mlp_pieces(w, z))
    linear(z.tokens, {normed_TH, z.hidden}, p.weight, p.bias,
           {s.gate_up_TX + p.column, z.gate_up});
}

void StackForward::layer(const LayerWeights& w, const LayerSaved& s,
                         float* out_TH) const {
  inner(w, s);
  swiglu(z.tokens, z.gate_up / 2, s.gate_up_TX, scratch.act_TI);
  add_product({scratch.act_TI, z.gate_up / 2}, w.down, w.down_bias, s.middle_TH,
              out_TH);
}

} // namespace troupe::models::stack
