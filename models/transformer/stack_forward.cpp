#include "models/transformer/stack_forward.hpp"

#include "models/transformer/context_attention.hpp"
#include "models/transformer/moe.hpp"

namespace troupe::models::stack {

ConstTypedPtr StackForward::normed(ConstTypedPtr x_TH, const Norm& by,
                                   float* rstd_T) const {
  if (!by.defined())
    return peers.gather(x_TH, scratch.wide_TH, z.tokens, z.hidden,
                        "gather tokens");
  model.backend->norm(z.norm_shape(), x_TH, by.weights(), scratch.norm_TH,
                      rstd_T);
  return peers.gather(scratch.norm_TH, scratch.wide_TH, z.tokens, z.hidden,
                      "gather tokens");
}

template <class Part>
void StackForward::add(const Branch& branch, const Part& product) const {
  const ModelShape& shape = model.shape;
  const bool plain = !shape.changes_branches();
  TypedPtr whole = branch.out_TH;
  if (!plain)
    whole = branch.behind.defined() ? branch.kept_TH : scratch.norm_TH;
  TypedPtr partial = whole;
  if (peers.split()) {
    partial = scratch.wide_TH;
    model.backend->fill(partial, z.gathered, 0.0F);
  }
  const bool starts = plain && peers.adds_stream();
  if (starts)
    model.backend->copy(branch.stream_TH, partial + z.own.first * z.hidden,
                        z.own.count * z.hidden);
  product(partial, starts || peers.split());
  peers.to_stream(partial, whole, z.tokens, z.hidden, "sum of products");
  if (plain)
    return;
  const std::int64_t count = z.own.count * z.hidden;
  if (branch.behind.defined()) {
    model.backend->norm(z.norm_shape(), whole, branch.behind.weights(),
                        scratch.norm_TH, branch.rstd_T);
    whole = scratch.norm_TH;
  }
  if (shape.multipliers.residual != 1)
    model.backend->scale(whole, count,
                         static_cast<float>(shape.multipliers.residual));
  model.backend->add(branch.stream_TH, whole, branch.out_TH, count);
}

void StackForward::add_product(const Branch& branch, ConstRowsView x,
                               const Product& product) const {
  add(branch, [&](TypedPtr target, bool accumulate) {
    end_product(x, product, target, accumulate);
  });
}

void StackForward::end_product(ConstRowsView x, const Product& product,
                               TypedPtr out_TH, bool accumulate) const {
  linear(*model.backend, z.rows(), x, product.weight,
         peers.first() ? product.bias : at::Tensor{}, {out_TH, z.hidden},
         accumulate);
  if (product.adapter.defined())
    adapter_math(model, z, workspace)
      .add(product.adapter, x, {out_TH, z.hidden});
}

void StackForward::add_adapters(const std::vector<AdapterPiece>& adapters,
                                ConstRowsView x, RowsView y) const {
  for (const AdapterPiece& piece : adapters)
    adapter_math(model, z, workspace)
      .add(piece.adapter, x, {y.data + piece.column, y.stride});
}

void StackForward::norm_heads(const LayerWeights& w,
                              const LayerSaved& s) const {
  if (!w.qk_norms.q.defined())
    return;
  const Workspace::Mark mark = workspace.mark();
  auto norms = qk_norms(w, model.shape, z);
  if (model.shape.qk_norm == QkNormScope::all_heads) {
    float* sums = workspace.take(2 * z.tokens);
    for (std::size_t i = 0; i < norms.size(); ++i) {
      const ConstTypedPtr x = s.qkv_TX + norms[i].column;
      float* squares_T = sums + static_cast<std::int64_t>(i) * z.tokens;
      model.backend->head_sums(norms[i].shape, {x, x, z.qkv, z.qkv}, nullptr,
                               squares_T);
      norms[i].shape.sums
        = {squares_T, nullptr, norms[i].shape.head_dim * peers.size()};
    }
    peers.sum(sums, 2 * z.tokens, "sum over heads");
  }
  for (const QkNorm& h : norms)
    model.backend->qk_norm(h.shape, h.weight.const_data_ptr<float>(),
                           s.qkv_TX + h.column, s.raw_qk_TX + h.raw);
  workspace.rewind(mark);
}

void StackForward::attend(const LayerWeights& w, const LayerSaved& s) const {
  const ModelShape& shape = model.shape;
  ConstTypedPtr normed_TH = normed(s.input_TH, w.input_norm, s.rstd1_T);
  for (const Piece& p : qkv_pieces(w, z))
    linear(*model.backend, z.rows(), {normed_TH, z.hidden}, p.weight, p.bias,
           {s.qkv_TX + p.column, z.qkv});
  add_adapters(qkv_adapters(w.adapters, {}, z), {normed_TH, z.hidden},
               {s.qkv_TX, z.qkv});
  norm_heads(w, s);
  if (const RopeTable* rope = model.rope.of(w.positions.rope))
    model.backend->rope(
      {z.tokens, z.qkv, shape.num_heads + shape.num_kv_heads, shape.head_dim},
      *rope, batch.positions_T, s.qkv_TX, /*backwards=*/false);
  if (batch.context)
    ContextAttention{model, batch, peers, z, workspace}.forward(w, s);
  else
    model.backend->attention(attention_shape(model, w, batch), s.qkv_TX,
                             s.context_TX, s.lse_AT);
  add_product(
    {w.behind_attention, s.behind1_TH, s.rstd3_T, s.input_TH, s.middle_TH},
    {s.context_TX, z.context}, {w.o, w.o_bias, w.adapters.o});
}

void StackForward::inner(const LayerWeights& w, const LayerSaved& s) const {
  attend(w, s);
  ConstTypedPtr normed_TH
    = normed(mlp_input(model.shape, s), w.post_norm, s.rstd2_T);
  if (w.has_experts())
    choose_experts(w, s, normed_TH);
  if (!w.has_mlp())
    return;
  const MlpShape unit = z.unit(w);
  for (const Piece& p : mlp_pieces(w, unit))
    linear(*model.backend, z.rows(), {normed_TH, z.hidden}, p.weight, p.bias,
           {s.gate_up_TX + p.column, unit.columns()});
  add_adapters(mlp_adapters(w.adapters, {}, unit), {normed_TH, z.hidden},
               {s.gate_up_TX, unit.columns()});
}

void StackForward::choose_experts(const LayerWeights& w, const LayerSaved& s,
                                  ConstTypedPtr normed_TH) const {
  moe_choose(moe_shape(model, w.moe, batch, z, peers), w.moe, normed_TH,
             *s.experts, workspace);
}

ConstTypedPtr StackForward::normed_before(ConstTypedPtr x_TH,
                                          const Norm& by) const {
  if (peers.split())
    return scratch.wide_TH;
  return by.defined() ? scratch.norm_TH : x_TH;
}

void StackForward::experts(const LayerWeights& w, const LayerSaved& s,
                           const Branch& branch) const {
  ConstTypedPtr normed_TH
    = normed_before(mlp_input(model.shape, s), w.post_norm);
  const bool scales = model.shape.multipliers.residual != 1;
  if (peers.split() || scales) { // the sum overwrites these rows
    const TypedPtr kept_TH = workspace.take(z.gathered, z.types.storage);
    model.backend->copy(normed_TH, kept_TH, z.tokens * z.hidden);
    normed_TH = kept_TH;
  }
  add(branch, [&](TypedPtr target, bool accumulate) {
    if (w.has_mlp()) {
      const MlpShape unit = z.unit(w);
      model.backend->mlp_unit(unit, s.gate_up_TX, scratch.act_TI);
      end_product({scratch.act_TI, unit.width},
                  {w.down, w.down_bias, w.adapters.down}, target, accumulate);
    } else if (!accumulate) {
      model.backend->fill(target, z.tokens * z.hidden, 0.0F);
    }
    moe_forward(moe_shape(model, w.moe, batch, z, peers), w.moe, normed_TH,
                *s.experts, target, workspace);
  });
}

void StackForward::finish(const LayerWeights& w, const LayerSaved& s,
                          TypedPtr out_TH) const {
  const Branch branch{w.behind_mlp, s.behind2_TH, s.rstd4_T, s.middle_TH,
                      out_TH};
  if (w.has_experts()) {
    const Workspace::Mark mark = workspace.mark();
    experts(w, s, branch);
    workspace.rewind(mark);
    return;
  }
  const MlpShape unit = z.unit(w);
  model.backend->mlp_unit(unit, s.gate_up_TX, scratch.act_TI);
  add_product(branch, {scratch.act_TI, unit.width},
              {w.down, w.down_bias, w.adapters.down});
}

void StackForward::again(const LayerWeights& w, const LayerSaved& s) const {
  inner(w, s);
  if (!w.has_experts() && !w.behind_mlp.defined())
    return;
  const Workspace::Mark mark = workspace.mark();
  finish(w, s, workspace.take(z.stream, z.types.storage));
  workspace.rewind(mark);
}

void StackForward::layer(const LayerWeights& w, const LayerSaved& s,
                         TypedPtr out_TH) const {
  inner(w, s);
  finish(w, s, out_TH);
}

} // namespace troupe::models::stack
