#include "models/transformer/expert_products.hpp"

#include "models/kernels/typed_tensor.hpp"

namespace troupe::models {

MlpShape ExpertProducts::unit() const {
  MlpShape unit = shape_.unit;
  unit.rows = group_.rows();
  return unit;
}

bool ExpertProducts::have_gate_up(
  const std::vector<ExpertWeights>& experts) const {
  for (std::size_t e = 0; e < group_.experts(); ++e)
    if (!experts[group_.first + e].gate_up.defined())
      return false;
  return true;
}

std::vector<ConstTypedPtr> ExpertProducts::weights(Matrix which) const {
  std::vector<ConstTypedPtr> found;
  for (std::size_t e = 0; e < group_.experts(); ++e)
    found.push_back(numbers_of(experts_[group_.first + e].*which));
  return found;
}

std::vector<float*>
ExpertProducts::grads_of(const std::vector<ExpertWeights>& grads,
                         Matrix which) const {
  std::vector<float*> found;
  for (std::size_t e = 0; e < group_.experts(); ++e) {
    const at::Tensor& d = grads[group_.first + e].*which;
    found.push_back(d.defined() ? d.mutable_data_ptr<float>() : nullptr);
  }
  return found;
}

void ExpertProducts::gate_up(ConstTypedPtr x, TypedPtr out) const {
  const std::int64_t h = shape_.hidden;
  const std::int64_t width = shape_.unit.width;
  Backend& backend = *shape_.backend;
  if (have_gate_up(experts_))
    return backend.grouped_product(gate_and_up(), {x, h},
                                   weights(&ExpertWeights::gate_up),
                                   {out, 2 * width});
  backend.grouped_product(of(width, h), {x, h}, weights(&ExpertWeights::gate),
                          {out, 2 * width});
  backend.grouped_product(of(width, h), {x, h}, weights(&ExpertWeights::up),
                          {out + width, 2 * width});
}

void ExpertProducts::down(ConstTypedPtr act, TypedPtr out) const {
  const std::int64_t h = shape_.hidden;
  const std::int64_t width = shape_.unit.width;
  shape_.backend->grouped_product(of(h, width), {act, width},
                                  weights(&ExpertWeights::down), {out, h});
}

void ExpertProducts::grad_act(ConstTypedPtr dy, TypedPtr d_act) const {
  const std::int64_t h = shape_.hidden;
  const std::int64_t width = shape_.unit.width;
  shape_.backend->grouped_grad_x(of(h, width), {dy, h},
                                 weights(&ExpertWeights::down), {d_act, width});
}

void ExpertProducts::grad_x(ConstTypedPtr d_gate_up, TypedPtr dx) const {
  const std::int64_t h = shape_.hidden;
  const std::int64_t width = shape_.unit.width;
  Backend& backend = *shape_.backend;
  if (have_gate_up(experts_))
    return backend.grouped_grad_x(gate_and_up(), {d_gate_up, 2 * width},
                                  weights(&ExpertWeights::gate_up), {dx, h});
  GroupedShape up = of(width, h);
  up.accumulate = true;
  backend.grouped_grad_x(of(width, h), {d_gate_up, 2 * width},
                         weights(&ExpertWeights::gate), {dx, h});
  backend.grouped_grad_x(up, {d_gate_up + width, 2 * width},
                         weights(&ExpertWeights::up), {dx, h});
}

void ExpertProducts::add_down_grads(
  ConstTypedPtr dy, ConstTypedPtr act,
  const std::vector<ExpertWeights>& grads) const {
  const std::int64_t h = shape_.hidden;
  const std::int64_t width = shape_.unit.width;
  shape_.backend->grouped_grad_w(of(h, width), {dy, h}, {act, width},
                                 grads_of(grads, &ExpertWeights::down));
}

void ExpertProducts::add_gate_up_grads(
  ConstTypedPtr d_gate_up, ConstTypedPtr x,
  const std::vector<ExpertWeights>& grads) const {
  const std::int64_t h = shape_.hidden;
  const std::int64_t width = shape_.unit.width;
  Backend& backend = *shape_.backend;
  if (have_gate_up(grads))
    return backend.grouped_grad_w(gate_and_up(), {d_gate_up, 2 * width}, {x, h},
                                  grads_of(grads, &ExpertWeights::gate_up));
  backend.grouped_grad_w(of(width, h), {d_gate_up, 2 * width}, {x, h},
                         grads_of(grads, &ExpertWeights::gate));
  backend.grouped_grad_w(of(width, h), {d_gate_up + width, 2 * width}, {x, h},
                         grads_of(grads, &ExpertWeights::up));
}

} // namespace troupe::models
