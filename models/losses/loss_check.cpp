// troupe::testing::check_loss: checks a user-defined loss against finite
// differences and its own parts, in double precision.
#include "models/losses/loss.hpp"

#include <ATen/ATen.h>

#include "troupe/loss.hpp"
#include "troupe/testing.hpp"

#include <cmath>
#include <random>

namespace troupe::testing::detail_testing {

namespace {

/// Returns random sequences with the columns that the loss reads.
models::TrainBatch random_batch(const std::vector<KeyInfo>& reads,
                                std::mt19937& random) {
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  models::TrainBatch batch;
  batch.cu_seqlens = {0, 5, 8, 15, 19};
  const std::int64_t tokens = batch.cu_seqlens.back();
  const auto numbers = [&](double scale) {
    at::Tensor made_T = at::empty({tokens}, at::kDouble);
    for (std::int64_t t = 0; t < tokens; ++t)
      made_T.mutable_data_ptr<double>()[t] = scale * unit(random);
    return made_T;
  };
  batch.logprobs_T = numbers(-3.0);
  batch.values_T = numbers(2.0);
  batch.mask_T = at::ones({tokens}, at::kDouble);
  for (const KeyInfo& key : reads)
    batch.columns.emplace(key.name, numbers(1.0));
  for (std::size_t s = 0; s + 1 < batch.cu_seqlens.size(); ++s) {
    const auto first = batch.cu_seqlens[s];
    batch.mask_T[first] = 0; // the first token is not predicted
    batch.mask_T[first + 1] = 0;
    for (const KeyInfo& key : reads)
      if (key.per == Per::sample)
        batch.columns.at(key.name)
          .slice(0, first, batch.cu_seqlens[s + 1])
          .fill_(unit(random));
  }
  return batch;
}

/// Returns the sequences [first, end) of a batch.
models::TrainBatch part_of(const models::TrainBatch& whole, std::size_t first,
                           std::size_t end) {
  const auto from = whole.cu_seqlens[first];
  const auto to = whole.cu_seqlens[end];
  models::TrainBatch part;
  for (std::size_t s = first; s <= end; ++s)
    part.cu_seqlens.push_back(whole.cu_seqlens[s] - from);
  part.logprobs_T = whole.logprobs_T.slice(0, from, to).clone();
  part.values_T = whole.values_T.slice(0, from, to).clone();
  part.mask_T = whole.mask_T.slice(0, from, to).clone();
  for (const auto& [key, column_T] : whole.columns)
    part.columns.emplace(key, column_T.slice(0, from, to).clone());
  return part;
}

struct LossAndGradient {
  double loss = 0;
  std::vector<double> gradient; ///< by logprobs, then by values
};

LossAndGradient evaluate(LossFunction loss, models::TrainBatch batch,
                         double denominator) {
  batch.logprobs_T = batch.logprobs_T.detach().clone().requires_grad_(true);
  batch.values_T = batch.values_T.detach().clone().requires_grad_(true);
  const Loss made = loss(TrainBatch(batch, denominator));
  LossAndGradient result{made.loss.item<double>(), {}};
  if (made.loss.requires_grad())
    made.loss.backward();
  for (const at::Tensor& leaf_T : {batch.logprobs_T, batch.values_T})
    for (std::int64_t t = 0; t < leaf_T.numel(); ++t)
      result.gradient.push_back(
        leaf_T.grad().defined() ? leaf_T.grad()[t].item<double>() : 0.0);
  return result;
}

double slope(LossFunction loss, const models::TrainBatch& batch,
             double denominator, std::int64_t at_t, bool of_values) {
  constexpr double step = 1e-5;
  const auto shifted = [&](double by) {
    models::TrainBatch moved = part_of(batch, 0, batch.cu_seqlens.size() - 1);
    (of_values ? moved.values_T : moved.logprobs_T)[at_t] += by;
    return evaluate(loss, moved, denominator).loss;
  };
  return (shifted(step) - shifted(-step)) / (2 * step);
}

double split_error(LossFunction loss, const models::TrainBatch& batch,
                   const LossAndGradient& whole, double denominator,
                   std::size_t cut) {
  const auto last = batch.cu_seqlens.size() - 1;
  const auto a = evaluate(loss, part_of(batch, 0, cut), denominator);
  const auto b = evaluate(loss, part_of(batch, cut, last), denominator);
  double error = std::abs(a.loss + b.loss - whole.loss);
  const auto head = static_cast<std::size_t>(batch.cu_seqlens[cut]);
  const auto tokens = static_cast<std::size_t>(batch.cu_seqlens[last]);
  for (std::size_t i = 0; i < whole.gradient.size(); ++i) {
    const std::size_t leaf = i / tokens;
    const std::size_t t = i % tokens;
    const double found = t < head
                           ? a.gradient[leaf * head + t]
                           : b.gradient[leaf * (tokens - head) + t - head];
    error = std::max(error, std::abs(found - whole.gradient[i]));
  }
  return error;
}

} // namespace

LossCheck check_loss(LossFunction loss, const std::vector<KeyInfo>& reads,
                     const MeanOver& mean_over) {
  std::mt19937 random(1);
  LossCheck check;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto batch = random_batch(reads, random);
    const at::Tensor weights_T
      = mean_over.key.empty() ? batch.mask_T : batch.at(mean_over.key);
    const double denominator = (weights_T * batch.mask_T).sum().item<double>();
    const auto whole = evaluate(loss, batch, denominator);
    const std::int64_t tokens = batch.cu_seqlens.back();
    for (std::int64_t i = 0; i < 2 * tokens; ++i)
      check.gradient_error = std::max(
        check.gradient_error,
        std::abs(slope(loss, batch, denominator, i % tokens, i >= tokens)
                 - whole.gradient[static_cast<std::size_t>(i)]));
    for (std::size_t cut = 1; cut + 1 < batch.cu_seqlens.size(); ++cut)
      check.split_error = std::max(
        check.split_error, split_error(loss, batch, whole, denominator, cut));
  }
  return check;
}

} // namespace troupe::testing::detail_testing
