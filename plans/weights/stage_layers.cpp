#include "plans/weights/stage_layers.hpp"

#include <algorithm>
#include <optional>

namespace troupe::plans {

namespace {

std::uint32_t stage_ceil(std::uint32_t a, std::uint32_t b) {
  return (a + b - 1) / b;
}

} // namespace

/// Layers count as the last one does: few models have other ones, and these
/// are the first.
UnitCosts unit_costs(std::span<const ParameterShape> parameters) {
  std::int32_t last = 0;
  for (const auto& parameter : parameters)
    last = std::max(last, parameter.layer);
  UnitCosts costs{.tied = true};
  double embedding = 0;
  for (const auto& parameter : parameters) {
    const auto elements = static_cast<double>(parameter.num_elements());
    if (parameter.layer < 0)
      embedding += elements;
    else if (parameter.layer == last)
      costs.head += elements;
    else if (parameter.layer == last - 1)
      costs.layer += elements;
    costs.tied &= parameter.layer != last || parameter.vector;
  }
  if (costs.tied)
    costs.head += embedding;
  return costs;
}

/// A search calls this ten thousand times for one shape, so the last result is
/// cached.
UnitCosts unit_costs(const ModelShape& shape) {
  struct Reply {
    ModelShape shape = {};
    UnitCosts costs = {};
  };
  thread_local std::optional<Reply> last;
  if (!last || !(last->shape == shape)) {
    auto one_layer = shape;
    one_layer.num_layers = 1;
    if (shape.experts.in_layer(shape.num_layers - 1))
      one_layer.experts.dense_layers.clear();
    else
      one_layer.experts.dense_layers = {true};
    last = {shape, unit_costs(parameters(one_layer))};
  }
  return last->costs;
}

StagedParameters::StagedParameters(std::span<const ParameterShape> all)
  : list(all),
    costs(unit_costs(all)) {
  for (const auto& parameter : all) {
    num_layers = std::max(num_layers, parameter.layer);
    num_experts = std::max(num_experts, parameter.expert + 1);
  }
}

StagedParameters::StagedParameters(const std::vector<ParameterShape>& all)
  : StagedParameters(std::span(all)) {}

StagedParameters::StagedParameters(std::span<const ParameterShape> some,
                                   const ModelShape& model)
  : list(some),
    num_layers(static_cast<std::int32_t>(model.num_layers)),
    num_experts(static_cast<std::int32_t>(model.experts.count)),
    costs(unit_costs(model)) {}

StageLayers::StageLayers(std::uint32_t num_layers, std::uint32_t num_stages,
                         const UnitCosts& costs)
  : before_(num_stages - 1),
    shared_(num_layers),
    last_(num_layers / num_stages) {
  if (before_ == 0)
    return;
  const auto slowest = [&](std::uint32_t last) {
    return std::max(stage_ceil(num_layers - last, before_) * costs.layer,
                    last * costs.layer + costs.head);
  };
  for (auto fewer = last_; fewer > 1; --fewer)
    if (slowest(fewer - 1) < slowest(last_))
      last_ = fewer - 1;
  shared_ -= last_;
}

std::uint32_t StageLayers::stage_of(std::uint32_t layer) const {
  return layer < shared_ && before_ > 0 ? layer * before_ / shared_ : before_;
}

std::uint32_t StageLayers::count(std::uint32_t stage) const {
  if (stage == before_)
    return last_;
  return stage_ceil((stage + 1) * shared_, before_)
         - stage_ceil(stage * shared_, before_);
}

std::uint32_t StageLayers::most_before() const {
  return before_ > 0 ? stage_ceil(shared_, before_) : last_;
}

} // namespace troupe::plans
