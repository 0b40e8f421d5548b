#include "models/engine/optimizer.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::models {

namespace {

constexpr std::int64_t adamw_piece_floats = 1 << 15; // 128 KiB per plane

/// Returns one run per whole parameter.
std::vector<OptimizerRun> whole_runs(const Parameters& parameters) {
  std::vector<OptimizerRun> runs;
  for (std::size_t i = 0; i < parameters.shapes().size(); ++i) {
    const ParameterShape& shape = parameters.shapes()[i];
    const std::int64_t begin = parameters.offset(i);
    runs.push_back({begin, begin + shape.num_elements(), begin, shape.decay,
                    true, shape.balances});
  }
  return runs;
}

} // namespace

std::vector<OptimizerRun> optimizer_runs(const LocalModel& part,
                                         const Parameters& parameters) {
  std::vector<OptimizerRun> runs;
  for (const plans::Box& box : part.optimizer.boxes) {
    const PartBox& owner = part.owner(box.parameter);
    const auto moment
      = static_cast<std::int64_t>(box.offset_bytes / sizeof(float));
    const std::int64_t begin
      = plans::cuts_weights(part.strategy)
          ? moment // same as the weights, which are cut in the same way
          : parameters.offset(part.box_index(owner)) + owner.place_of(box);
    runs.push_back({begin, begin + box.num_elements(), moment,
                    part.parameters[box.parameter].decay,
                    part.strategy.zero == Zero::none ? part.counts(owner)
                                                     : owner.first_owner,
                    part.parameters[box.parameter].balances});
  }
  return runs;
}

AdamW::AdamW(Parameters& parameters, const OptimizerSettings& settings)
  : AdamW(parameters, settings, whole_runs(parameters)) {}

AdamW::AdamW(Parameters& parameters, const OptimizerSettings& settings,
             const std::vector<OptimizerRun>& runs, Backend& backend)
  : parameters_(parameters),
    settings_(settings),
    backend_(backend) {
  for (const OptimizerRun& run : runs) {
    if (run.balances) {
      balanced_.push_back(run);
      continue;
    }
    for (std::int64_t at = run.begin; at < run.end; at += adamw_piece_floats)
      pieces_.push_back({at, std::min(run.end, at + adamw_piece_floats),
                         run.moment + at - run.begin, run.decay, run.counted});
  }
}

double AdamW::squared_norm() const {
  return backend_.sum_of_squares(parameters_.plane(Plane::grad).data(),
                                 pieces_);
}

double AdamW::clip_scale(double norm) const {
  return settings_.clip > 0 ? std::min(1.0, settings_.clip / (norm + 1e-6))
                            : 1.0;
}

void AdamW::apply(double learning_rate, double scale, std::uint64_t step) {
  const auto t = static_cast<double>(step);
  const double beta1 = settings_.betas[0];
  const double beta2 = settings_.betas[1];
  AdamNumbers n;
  n.keep = static_cast<float>(1 - learning_rate * settings_.weight_decay);
  n.scale = static_cast<float>(scale);
  n.beta1 = static_cast<float>(beta1);
  n.beta2 = static_cast<float>(beta2);
  n.step = static_cast<float>(learning_rate / (1 - std::pow(beta1, t)));
  n.root = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t)));
  n.eps = static_cast<float>(settings_.eps);
  const auto [weights, rounded] = parameters_.updated_weights();
  backend_.adamw(n,
                 {weights, parameters_.plane(Plane::grad).data(),
                  parameters_.plane(Plane::m).data(),
                  parameters_.plane(Plane::v).data(),
                  static_cast<std::uint16_t*>(rounded.data())},
                 pieces_);
}

void AdamW::balance() {
  if (settings_.router_bias_rate == 0 || balanced_.empty())
    return;
  const auto rate = static_cast<float>(settings_.router_bias_rate);
  const auto [weights, rounded] = parameters_.updated_weights();
  const float* const loads = parameters_.plane(Plane::grad).data();
  for (const OptimizerRun& run : balanced_) {
    const std::int64_t count = run.end - run.begin;
    const auto load = backend_.read(loads + run.begin, count);
    const auto weight = backend_.change(weights + run.begin, count);
    for (std::int64_t i = 0; i < count; ++i)
      if (load.floats()[i] != 0)
        weight.floats()[i] -= load.floats()[i] > 0 ? rate : -rate;
    weight.put_back();
    if (rounded)
      backend_.copy(weights + run.begin, rounded + run.begin, count);
  }
}

void AdamW::clear_gradient() {
  const std::span<float> g = parameters_.plane(Plane::grad);
  backend_.fill(g.data(), static_cast<std::int64_t>(g.size()), 0.0F);
}

} // namespace troupe::models
