#include "models/transformer/inputs_backward.hpp"

namespace troupe::models {
namespace {

// Ids outside of this rank's vocabulary belong to other tp ranks. The look-up
// gives the padding row no gradient, like `torch.nn.Embedding` with
// `padding_idx`; the contribution of a tied head to that row stays.
void embedding_backward(const Transformer& model, const PackedTokens& batch,
                        ConstTypedPtr dx_TH, const Weights& grads) {
  if (!grads.embedding.defined())
    return; // frozen
  const std::int64_t known = grads.embedding.size(0);
  std::vector<std::int64_t> rows_T;
  rows_T.reserve(batch.ids_T.size());
  for (const std::int64_t id : batch.ids_T) {
    const std::int64_t row = id - grads.first_token;
    const bool learns = row < known && id != model.shape.padding_row;
    rows_T.push_back(learns ? row : -1);
  }
  model.backend->scatter_rows(
    {rows_T, model.shape.hidden_size, embedding_scale(model.shape)}, dx_TH,
    grads.embedding.mutable_data_ptr<float>());
}

// Learned positions are on every tp rank; the first one counts them.
void positions_backward(const Transformer& model, const PackedTokens& batch,
                        ConstTypedPtr dx_TH, const at::Tensor& d_positions) {
  if (!d_positions.defined())
    return;
  const std::vector<std::int64_t> rows_T(batch.positions_T.begin(),
                                         batch.positions_T.end());
  model.backend->scatter_rows({rows_T, model.shape.hidden_size}, dx_TH,
                              d_positions.mutable_data_ptr<float>());
}

} // namespace

void inputs_backward(const Transformer& model, const PackedTokens& batch,
                     const TensorPeers& peers, ConstTypedPtr dx_TH,
                     const Weights& grads) {
  model.gate->before_backward(-1);
  embedding_backward(model, batch, dx_TH, grads);
  if (peers.first())
    positions_backward(model, batch, dx_TH, grads.positions);
  model.gate->after_backward(-1);
}

} // namespace troupe::models
