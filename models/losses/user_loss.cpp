#include "models/losses/user_loss.hpp"

#include "config/base/error.hpp"

#include <ATen/ops/dot.h>

#include "troupe/detail/crash_context.hpp"
#include "troupe/loss.hpp"

namespace troupe {

namespace {

const at::Tensor& defined(const at::Tensor& tensor, const char* what,
                          const char* who) {
  if (!tensor.defined())
    throw ConfigError(Place{}, std::string("a loss asks for ") + what
                                 + ", which only " + who + " has");
  return tensor;
}

} // namespace

const at::Tensor& TrainBatch::logprobs() const {
  return defined(parts_.logprobs_T, "logprobs()", "a role without scalar head");
}

const at::Tensor& TrainBatch::values() const {
  return defined(parts_.values_T, "values()", "a role with a scalar head");
}

const at::Tensor& TrainBatch::scores() const {
  return defined(parts_.scores_N, "scores()", "a role with a scalar head");
}

const at::Tensor& TrainBatch::mask() const {
  return parts_.mask_T;
}

std::int64_t TrainBatch::num_sequences() const {
  return parts_.num_sequences();
}

const at::Tensor& TrainBatch::at(const char* key) const {
  if (!parts_.has(key))
    throw ConfigError(Place{}, std::string("a loss reads key ") + key
                                 + "; put it into the reads() of its train()");
  return parts_.at(key);
}

namespace models {

namespace {

/// Returns this micro-batch's contribution to the denominator, the weight of
/// its sums.
double own_part(const TrainBatch& batch, const std::string& mean_over) {
  const at::Tensor& weights_T
    = mean_over.empty() ? batch.mask_T : batch.at(mean_over);
  return at::dot(weights_T, batch.mask_T).item<float>();
}

/// Returns the loss, checked to be one number with a gradient, as the engine
/// requires.
const at::Tensor& checked_loss(const at::Tensor& loss, const TrainBatch& batch,
                               const std::string& call) {
  const auto refuse = [&](const std::string& what) {
    throw ConfigError(Place{}, "the loss of " + call + " gave " + what);
  };
  if (!loss.defined())
    refuse("no tensor; try {.loss = ...}");
  if (loss.numel() != 1)
    refuse("a tensor of " + std::to_string(loss.numel())
           + " numbers; try its .sum() / b.denominator()");
  const auto learns = [](const at::Tensor& tensor) {
    return tensor.defined() && tensor.requires_grad();
  };
  const bool may_learn = learns(batch.logprobs_T) || learns(batch.values_T)
                         || learns(batch.scores_N);
  if (may_learn && !learns(loss))
    refuse("what no weight can change; try one that uses b.logprobs(), or "
           "b.values() and b.scores() of a scalar head");
  return loss;
}

} // namespace

LossEntry user_loss_entry(std::string name,
                          const troupe::detail::UserCall& call,
                          bool scalar_head) {
  LossEntry entry;
  entry.name = std::move(name);
  entry.exposes.logprobs = !scalar_head;
  entry.exposes.values = scalar_head;
  entry.exposes.scores = scalar_head;
  entry.metric_prefix = call.role + "/";
  entry.mean_over = call.mean_over.key;
  for (const KeyInfo& key : call.reads)
    entry.columns.push_back(key.name);
  entry.function = [loss = call.loss, mean_over = entry.mean_over,
                    prefix = entry.metric_prefix, call_name = call.name](
                     const TrainBatch& batch, const Denominators& denominators,
                     const LossSettings&) {
    const double denominator
      = mean_over.empty() ? denominators.tokens : denominators.weights;
    const Loss made = [&] {
      const CrashContext crash_context("the loss of " + call_name);
      return loss(troupe::TrainBatch(batch, denominator));
    }();
    LossResult result{.loss = checked_loss(made.loss, batch, call_name),
                      .sums = {}};
    const double part = own_part(batch, mean_over);
    result.sums.add(prefix + "loss", made.loss.item<float>() * denominator,
                    part);
    for (const auto& [sum_name, sum] : made.sums)
      result.sums.add(prefix + sum_name, sum.item<float>(), part);
    return result;
  };
  return entry;
}

} // namespace models

} // namespace troupe
