#include "models/transformer/transformer.hpp"

#include "config/base/error.hpp"
#include "models/kernels/typed_tensor.hpp"
#include "models/parallel/run_context.hpp"
#include "models/transformer/stack_forward.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::models {

namespace {

// Returns what a layer keeps of its MLP for all tokens, in floats per token.
std::int64_t mlp_room(const LayerWeights& w, const stack::Sizes& z) {
  return w.has_mlp() ? z.unit(w).columns() : 0;
}

// Returns the room for any layer.
std::int64_t mlp_room(const Transformer& model, const stack::Sizes& z) {
  std::int64_t most = 0;
  for (const LayerWeights& w : model.weights.layers)
    most = std::max(most, mlp_room(w, z));
  return most;
}

LayerSaved layer_memory(const ModelShape& shape, const stack::Sizes& z,
                        std::int64_t mlp_room, Workspace& workspace) {
  LayerSaved s;
  s.rstd1_T = workspace.take(z.own.count);
  s.qkv_TX = workspace.take(z.tokens * z.qkv, z.types.storage);
  s.lse_AT = workspace.take(z.tokens * z.heads);
  s.context_TX = workspace.take(z.tokens * z.context, z.types.storage);
  s.middle_TH = workspace.take(z.stream, z.types.storage);
  s.rstd2_T = workspace.take(z.own.count);
  s.gate_up_TX = workspace.take(z.tokens * mlp_room, z.types.storage);
  if (shape.qk_norm != QkNormScope::none)
    s.raw_qk_TX
      = workspace.take(z.tokens * (z.context + z.kv), z.types.storage);
  if (shape.norms_outputs()) {
    s.behind1_TH = workspace.take(z.stream, z.types.storage);
    s.rstd3_T = workspace.take(z.own.count);
    s.behind2_TH = workspace.take(z.stream, z.types.storage);
    s.rstd4_T = workspace.take(z.own.count);
  }
  return s;
}

void keep_probe(std::vector<std::vector<float>>* probe, ConstTypedPtr x_TH,
                const stack::StackForward& run) {
  if (probe == nullptr)
    return;
  const ConstTypedPtr whole_TH = run.peers.gather(
    x_TH, run.scratch.wide_TH, run.z.tokens, run.z.hidden, "gather tokens");
  const std::int64_t count = run.z.tokens * run.z.hidden;
  const Workspace::Mark mark = run.workspace.mark();
  float* floats_TH = run.workspace.take(count);
  run.model.backend->copy(whole_TH, floats_TH, count);
  const auto seen = run.model.backend->read(floats_TH, count);
  probe->emplace_back(seen.floats(), seen.floats() + count);
  run.workspace.rewind(mark);
}

} // namespace

PackedTokens pack(std::span<const std::span<const std::int32_t>> sequences) {
  PackedTokens batch;
  batch.cu_seqlens.push_back(0);
  for (const std::span<const std::int32_t> ids : sequences) {
    batch.ids_T.insert(batch.ids_T.end(), ids.begin(), ids.end());
    for (std::size_t i = 0; i < ids.size(); ++i)
      batch.positions_T.push_back(static_cast<std::int32_t>(i));
    batch.cu_seqlens.push_back(static_cast<std::int64_t>(batch.ids_T.size()));
  }
  return batch;
}

std::vector<std::int64_t> PackedTokens::copies_T() const {
  std::vector<std::int64_t> continued_N(
    static_cast<std::size_t>(num_sequences()), 0);
  for (const std::int32_t prefix : continues)
    if (prefix >= 0)
      ++continued_N[static_cast<std::size_t>(prefix)];
  std::vector<std::int64_t> copies;
  for (std::size_t s = 0; s < continued_N.size(); ++s)
    copies.insert(copies.end(),
                  static_cast<std::size_t>(cu_seqlens[s + 1] - cu_seqlens[s]),
                  std::max<std::int64_t>(1, continued_N[s]));
  return copies;
}

void embed(const Transformer& model, std::span<const std::int32_t> ids_T,
           TypedPtr out_TH) {
  const std::int64_t known = model.weights.embedding.size(0);
  std::vector<std::int64_t> rows_T;
  rows_T.reserve(ids_T.size());
  for (const std::int64_t id : ids_T) {
    if (id < 0 || id >= model.shape.vocab_size)
      throw FailureError(Failure{Errc::bad_input, "engine",
                                 "token id " + std::to_string(id)
                                   + " is outside the vocabulary of "
                                   + std::to_string(model.shape.vocab_size),
                                 ""});
    const std::int64_t row = id - model.weights.first_token;
    rows_T.push_back(row < known ? row : -1);
  }
  model.backend->gather_rows(
    {rows_T, model.shape.hidden_size, embedding_scale(model.shape)},
    numbers_of(model.weights.embedding), out_TH);
}

float embedding_scale(const ModelShape& shape) {
  return shape.scaled_embedding
           ? std::sqrt(static_cast<float>(shape.hidden_size))
           : static_cast<float>(shape.multipliers.embedding);
}

namespace {

// Adds the rows of learned positions, which exist on every tp rank.
void add_positions(const Transformer& model, const PackedTokens& batch,
                   const TensorPeers& peers, TypedPtr x_TH) {
  const at::Tensor& table = model.weights.positions;
  if (!table.defined() || !peers.first())
    return;
  for (const std::int64_t position : batch.positions_T)
    if (position >= table.size(0))
      throw FailureError(Failure{Errc::bad_input, "engine",
                                 "a sequence is longer than the model's "
                                   + std::to_string(table.size(0))
                                   + " positions",
                                 ""});
  const std::vector<std::int64_t> rows_T(batch.positions_T.begin(),
                                         batch.positions_T.end());
  model.backend->add_rows({rows_T, model.shape.hidden_size}, numbers_of(table),
                          x_TH);
}

// Computes the stream of the stage's first layer: that of the embedding, or of
// the stage before.
void first_stream(const stack::StackForward& run, const RunContext& context,
                  TypedPtr x_TH) {
  const Transformer& model = run.model;
  if (!context.groups.first_stage())
    return stack::receive(*model.backend, *context.groups.previous, x_TH,
                          run.z.stream, "activations");
  model.gate->before_forward(-1);
  const TypedPtr rows = run.peers.split() ? run.scratch.wide_TH : x_TH;
  embed(model, run.batch.ids_T, rows);
  add_positions(model, run.batch, run.peers, rows);
  run.peers.to_stream(rows, x_TH, run.z.tokens, run.z.hidden, "embedding");
}

// Returns where a layer records the experts that it chose.
RoutedTokens* routed_of(Saved* saved, RoutedTokens& unsaved) {
  if (saved == nullptr)
    return &unsaved;
  return saved->routed.emplace_back(std::make_unique<RoutedTokens>()).get();
}

// Computes the norm of the last layer's stream x, gathered over the tp group.
void final_norm(const stack::StackForward& run, TypedPtr x_TH, Saved* saved,
                TypedPtr hidden_TH) {
  float* rstd_T = nullptr;
  if (saved != nullptr) {
    rstd_T = run.workspace.take(run.z.own.count);
    saved->last_TH = x_TH;
    saved->rstd_T = rstd_T;
  }
  const TypedPtr normed_TH
    = run.peers.split() ? run.scratch.norm_TH : hidden_TH;
  run.model.backend->norm(run.z.norm_shape(), x_TH,
                          run.model.weights.final_norm.weights(), normed_TH,
                          rstd_T);
  run.peers.gather(normed_TH, hidden_TH, run.z.tokens, run.z.hidden,
                   "gather tokens");
}

} // namespace

std::int64_t hidden_floats(const Transformer& model, const PackedTokens& batch,
                           const RunContext& context) {
  return TensorPeers(context, *model.backend, model.split_tokens)
           .gathered_rows(batch.num_tokens())
         * model.shape.hidden_size;
}

TypedPtr forward(const Transformer& model, const PackedTokens& batch,
                 const RunContext& context, Workspace& workspace, Saved* saved,
                 std::vector<std::vector<float>>* probe) {
  TensorPeers peers(context, *model.backend, model.split_tokens);
  const stack::Sizes z = stack::sizes(model, batch, peers);
  const TypedPtr hidden = workspace.take(z.gathered, z.types.storage);
  peers.use_streams(hidden.data());
  TypedPtr x = workspace.take(z.stream, z.types.storage);
  const TypedPtr wide
    = peers.split() ? workspace.take(z.gathered, z.types.storage) : TypedPtr{};
  const stack::LayerScratch scratch{
    workspace.take(z.stream, z.types.storage),
    workspace.take(z.tokens * z.widest.width, z.types.storage), wide};
  const stack::StackForward run{model, batch, peers, z, scratch, workspace};
  first_stream(run, context, x);
  keep_probe(probe, x, run);
  const bool keeps = saved != nullptr && !saved->recompute;
  LayerSaved memory;
  RoutedTokens routed; // of layers that are not saved
  routed.is_kept = false;
  if (!keeps)
    memory = layer_memory(model.shape, z, mlp_room(model, z),
                          workspace); // reused by all layers
  if (saved == nullptr)
    memory.lse_AT = nullptr;
  std::int64_t number = model.first_layer;
  for (const LayerWeights& w : model.weights.layers) {
    context.check();
    model.gate->before_forward(number++);
    if (keeps)
      memory = layer_memory(model.shape, z, mlp_room(w, z), workspace);
    memory.input_TH = x;
    memory.experts = routed_of(saved, routed);
    if (saved != nullptr) {
      x = workspace.take(z.stream, z.types.storage);
      saved->layers.push_back(memory);
    }
    const Workspace::Mark mark = workspace.mark();
    run.layer(w, memory, x);
    if (!keeps)
      workspace.rewind(mark);
    keep_probe(probe, x, run);
  }
  if (!context.groups.last_stage()) {
    stack::send(*model.backend, *context.groups.next, x, z.stream,
                "activations");
    return {};
  }
  model.gate->before_forward(number);
  final_norm(run, x, saved, hidden);
  return hidden;
}

} // namespace troupe::models
