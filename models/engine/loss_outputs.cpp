#include "models/engine/loss_outputs.hpp"

#include "config/base/error.hpp"
#include "models/parallel/pipeline.hpp"

#include <ATen/ops/zeros.h>

#include <algorithm>

namespace troupe::models {

namespace {

at::Tensor outputs_leaf(at::IntArrayRef sizes) {
  return at::zeros(sizes, at::kFloat);
}

// Returns a leaf's gradient, if the loss read it.
at::Tensor outputs_gradient(const at::Tensor& leaf) {
  return leaf.defined() && leaf.grad().defined() ? leaf.grad().contiguous()
                                                 : at::Tensor{};
}

// Returns the packed index of token `t` of all sequences; -1: another cp
// rank's.
std::int64_t outputs_token(const TrainMicroBatch& m, std::int64_t t) {
  return m.sequences.packed_L[static_cast<std::size_t>(t)];
}

// Copies the numbers [R, K] of the wanted entries into a leaf [L, K].
void outputs_scatter(const WantedTokens& wanted, const float* from_RK,
                     std::int64_t width, at::Tensor& leaf_LK) {
  float* to_LK = leaf_LK.mutable_data_ptr<float>();
  for (const std::int64_t entry : wanted.entries_R) {
    std::copy_n(from_RK, width, to_LK + entry * width);
    from_RK += width;
  }
}

// Returns the wanted entries [R, K] of a gradient [L, K].
std::vector<float> outputs_gather(const WantedTokens& wanted,
                                  const at::Tensor& d_LK, std::int64_t width) {
  const float* from_LK = d_LK.const_data_ptr<float>();
  std::vector<float> d_RK;
  for (const std::int64_t entry : wanted.entries_R)
    d_RK.insert(d_RK.end(), from_LK + entry * width,
                from_LK + (entry + 1) * width);
  return d_RK;
}

// Returns [R] the sums of rows [R, K].
std::vector<float> outputs_sums(const std::vector<float>& d_RK,
                                std::int64_t width) {
  std::vector<float> sums_R;
  for (auto row = d_RK.begin(); row != d_RK.end(); row += width) {
    float sum = 0;
    for (auto own = row; own != row + width; ++own)
      sum += *own;
    sums_R.push_back(sum);
  }
  return sums_R;
}

} // namespace

void LossOutputs::expose(TrainMicroBatch& m, const KeptReader* kept) const {
  if (!m.picked_LK.empty())
    check_picked(m);
  if (loss_.exposes.logprobs || loss_.exposes.entropy || !m.picked_LK.empty())
    expose_tokens(m, kept);
  if (loss_.exposes.values || loss_.exposes.scores)
    expose_scalars(m);
  context_.groups.check(); // the host has waited for what it read
}

void LossOutputs::check_picked(TrainMicroBatch& m) const {
  const std::int64_t vocab = impl_.shape.vocab_size;
  const auto outside = std::ranges::find_if(
    m.picked_LK, [&](std::int32_t id) { return id < 0 || id >= vocab; });
  if (outside != m.picked_LK.end())
    throw ConfigError(
      {.place = {},
       .path = "models." + impl_.spec.role,
       .expected = "a vocabulary with all ids of key " + loss_.picked.ids,
       .got
       = std::to_string(vocab) + " tokens, and id " + std::to_string(*outside),
       .hint = "models with one tokenizer"});
}

void LossOutputs::expose_tokens(TrainMicroBatch& m,
                                const KeptReader* kept) const {
  m.wanted = wanted_tokens(m.sequences, m.mask_L);
  if (kept != nullptr)
    kept->read(m.rows, impl_.shape.vocab_size, m.wanted);
  const std::int64_t entries = m.sequences.num_tokens();
  const std::int64_t width
    = static_cast<std::int64_t>(m.picked_LK.size()) / entries;
  m.wanted.picks = width;
  for (const std::int64_t entry : m.wanted.entries_R)
    m.wanted.picked_RK.insert(m.wanted.picked_RK.end(),
                              m.picked_LK.begin() + entry * width,
                              m.picked_LK.begin() + (entry + 1) * width);
  m.found = token_statistics(impl_.vocabulary_head(temperature_, context_),
                             m.hidden_TH, m.wanted, *m.workspace, true);
  const auto leaf = [&](at::IntArrayRef sizes, const float* from,
                        std::int64_t per_entry) {
    at::Tensor made = outputs_leaf(sizes);
    const auto found = impl_.backend.read(from, m.wanted.size() * per_entry);
    outputs_scatter(m.wanted, found.floats(), per_entry, made);
    join(made);
    return made.set_requires_grad(true);
  };
  if (loss_.exposes.logprobs)
    m.batch.logprobs_T = leaf({entries}, m.found.logprobs_R, 1);
  if (loss_.exposes.entropy)
    m.batch.entropy_T = leaf({entries}, m.found.entropy_R, 1);
  if (width > 0)
    m.batch.picked_TK
      = leaf({entries, width}, m.found.picked.logprobs_RK, width);
}

// A rank's loss reads whole sequences, and its gradient is that of the rank's
// own entries.
void LossOutputs::join(const at::Tensor& output) const {
  context_.groups.join_context(output.mutable_data_ptr<float>(),
                               static_cast<std::size_t>(output.numel()),
                               DType::f32, "outputs of a cp group");
}

void LossOutputs::expose_scalars(TrainMicroBatch& m) const {
  const std::int64_t tokens = m.sequences.tokens.num_tokens();
  const auto outputs = impl_.scalar_outputs(m.hidden_TH, tokens, *m.workspace);
  const float* outputs_T = outputs.floats();
  const std::vector<std::int64_t>& cu = m.sequences.cu_seqlens;
  at::Tensor values_L = outputs_leaf({m.sequences.num_tokens()});
  at::Tensor scores_N = outputs_leaf({m.batch.num_sequences()});
  float* values = values_L.mutable_data_ptr<float>();
  const auto output = [&](std::int64_t t) {
    const std::int64_t token = outputs_token(m, t);
    return token < 0 ? 0.0F : outputs_T[token];
  };
  for (std::size_t s = 0; s + 1 < cu.size(); ++s) {
    for (std::int64_t t = cu[s] + 1; t < cu[s + 1]; ++t)
      values[t] = output(t - 1);
    if (cu[s] < cu[s + 1])
      scores_N.mutable_data_ptr<float>()[s] = output(cu[s + 1] - 1);
  }
  join(values_L);
  join(scores_N);
  if (loss_.exposes.values)
    m.batch.values_T = values_L.set_requires_grad(true);
  if (loss_.exposes.scores)
    m.batch.scores_N = scores_N.set_requires_grad(true);
}

TypedPtr LossOutputs::gradient(TrainMicroBatch& m) const {
  const std::int64_t floats
    = hidden_floats(impl_.model, m.sequences.tokens, context_);
  const TypedPtr d_hidden_TH = m.workspace->take(floats, m.hidden_TH.type());
  impl_.backend.fill(d_hidden_TH, floats, 0.0F);
  const TrainBatch& read = m.batch;
  if (read.logprobs_T.defined() || read.entropy_T.defined()
      || read.picked_TK.defined())
    gradient_of_tokens(m, d_hidden_TH);
  if (read.values_T.defined() || read.scores_N.defined())
    gradient_of_scalars(m, d_hidden_TH);
  return d_hidden_TH;
}

void LossOutputs::gradient_of_tokens(TrainMicroBatch& m,
                                     TypedPtr d_hidden_TH) const {
  const auto gather = [&](const at::Tensor& leaf_T) -> const float* {
    const at::Tensor d_L = outputs_gradient(leaf_T);
    return d_L.defined()
             ? impl_.written(outputs_gather(m.wanted, d_L, 1), *m.workspace)
             : nullptr;
  };
  TokenGradients gradients{.d_logprobs_R = gather(m.batch.logprobs_T),
                           .d_entropy_R = gather(m.batch.entropy_T)};
  const at::Tensor d_picked_LK = outputs_gradient(m.batch.picked_TK);
  if (d_picked_LK.defined()) {
    const std::vector<float> d_RK
      = outputs_gather(m.wanted, d_picked_LK, m.wanted.picks);
    gradients.d_picked_RK = impl_.written(d_RK, *m.workspace);
    gradients.d_picked_sums_R
      = impl_.written(outputs_sums(d_RK, m.wanted.picks), *m.workspace);
  }
  token_statistics_backward(impl_.vocabulary_head(temperature_, context_),
                            m.hidden_TH, m.wanted, m.found, gradients,
                            d_hidden_TH, impl_.grads->head, *m.workspace);
}

void LossOutputs::gradient_of_scalars(TrainMicroBatch& m,
                                      TypedPtr d_hidden_TH) const {
  const std::vector<std::int64_t>& cu = m.sequences.cu_seqlens;
  const std::int64_t tokens = m.sequences.tokens.num_tokens();
  std::vector<float> d_T(static_cast<std::size_t>(tokens), 0.0F);
  const at::Tensor values = outputs_gradient(m.batch.values_T);
  const at::Tensor scores = outputs_gradient(m.batch.scores_N);
  const auto add = [&](std::int64_t t, float gradient) {
    if (const std::int64_t token = outputs_token(m, t); token >= 0)
      d_T[static_cast<std::size_t>(token)] += gradient;
  };
  for (std::size_t s = 0; s + 1 < cu.size(); ++s) {
    for (std::int64_t t = cu[s] + 1; values.defined() && t < cu[s + 1]; ++t)
      add(t - 1, values.const_data_ptr<float>()[t]);
    if (scores.defined() && cu[s] < cu[s + 1])
      add(cu[s + 1] - 1, scores.const_data_ptr<float>()[s]);
  }
  if (!TensorPeers(context_, impl_.backend).first())
    return; // every tp rank has the head: the first one counts it
  impl_.backend.scalar_rows_backward(
    impl_.weights.head.const_data_ptr<float>(), impl_.shape.hidden_size,
    m.hidden_TH, tokens, impl_.written(d_T, *m.workspace), d_hidden_TH,
    impl_.grads->head.mutable_data_ptr<float>());
}

} // namespace troupe::models
