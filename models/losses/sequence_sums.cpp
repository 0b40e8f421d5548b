#include "models/losses/sequence_sums.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

namespace {

/// Returns the index of each token's sequence.
at::Tensor sequence_index_T(const TrainBatch& batch) {
  at::Tensor index_T = at::empty({batch.cu_seqlens.back()}, at::kLong);
  auto* index = index_T.mutable_data_ptr<std::int64_t>();
  for (std::int64_t s = 0; s < batch.num_sequences(); ++s)
    for (auto t = batch.cu_seqlens[static_cast<std::size_t>(s)];
         t < batch.cu_seqlens[static_cast<std::size_t>(s) + 1]; ++t)
      index[t] = s;
  return index_T;
}

} // namespace

at::Tensor sequence_sums_N(const at::Tensor& x_T, const TrainBatch& batch) {
  return at::zeros({batch.num_sequences()}, at::kFloat)
    .index_add(0, sequence_index_T(batch), x_T);
}

at::Tensor first_entries_N(const at::Tensor& x_T, const TrainBatch& batch) {
  at::Tensor first_N = at::empty({batch.num_sequences()}, at::kLong);
  std::copy_n(batch.cu_seqlens.begin(), batch.num_sequences(),
              first_N.mutable_data_ptr<std::int64_t>());
  return x_T.index_select(0, first_N);
}

} // namespace troupe::models
