// Numbers of sequences from numbers of their tokens, as losses over whole
// responses read them.
#pragma once

#include "models/losses/loss.hpp"

#include <ATen/core/Tensor.h>

namespace troupe::models {

/// Returns [N] the sum of x over the tokens of each sequence.
at::Tensor sequence_sums_N(const at::Tensor& x_T, const TrainBatch& batch);

/// Returns [N] the entry of each sequence's first token: a column with one
/// number per sample has it at all tokens. No sequence is empty.
at::Tensor first_entries_N(const at::Tensor& x_T, const TrainBatch& batch);

} // namespace troupe::models
