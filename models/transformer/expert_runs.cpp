#include "models/transformer/expert_runs.hpp"

#include "models/kernels/backend.hpp"
#include "models/transformer/expert_products.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

std::int64_t most_rows(const std::vector<ExpertGroup>& groups) {
  std::int64_t most = 0;
  for (const ExpertGroup& group : groups)
    most = std::max(most, group.rows());
  return most;
}

struct ExpertBackward {
  const ExpertProducts& products;
  const std::vector<ExpertWeights>& grads; ///< of the device
  RoutedSlots slots;
  float* d_weight_S; ///< of the device

  /// Computes dx [n, H] from dy [n, H] and x [n, H], gathered; consumes gate_up
  /// [n, 2I]; d_act and act have room for [n, I].
  void run(TypedPtr dy, ConstTypedPtr x, TypedPtr gate_up, TypedPtr d_act,
           TypedPtr act, TypedPtr dx) const {
    const std::int64_t h = products.shape().hidden;
    const std::int64_t width = products.shape().unit.width;
    Backend& backend = *products.shape().backend;
    products.grad_act(dy, d_act);
    backend.mlp_unit(products.unit(), gate_up, act);
    backend.row_dots({slots.rows, width}, d_act, act, d_weight_S + slots.begin);
    backend.scale_rows(slots.weights(), width, d_act);
    backend.scale_rows(slots.weights(), h, dy);
    backend.mlp_unit_backward(products.unit(), gate_up, d_act);
    products.add_down_grads(dy, d_act, grads);
    products.add_gate_up_grads(gate_up, x, grads);
    products.grad_x(gate_up, dx);
  }
};

} // namespace

std::vector<ExpertGroup> ExpertInputs::groups(const Backend& backend) const {
  return routing.groups_of(first, experts.size(),
                           backend.grouped_rows_at_once());
}

void run_experts(const MoeShape& shape, const ExpertInputs& in, TypedPtr out,
                 Workspace& workspace) {
  const std::int64_t h = shape.hidden;
  const std::int64_t width = shape.unit.width;
  const auto groups = in.groups(*shape.backend);
  const std::int64_t most = most_rows(groups);
  const Workspace::Mark mark = workspace.mark();
  const TypedPtr rows_x = workspace.take(most * h, shape.storage);
  const TypedPtr rows_y = workspace.take(most * h, shape.storage);
  const TypedPtr act = workspace.take(most * width, shape.storage);
  for (const ExpertGroup& group : groups) {
    const ExpertProducts products{shape, in.experts, group};
    const RoutedSlots slots{in.routing, group.begin, group.rows()};
    const TypedPtr gate_up = in.gate_up + group.before * 2 * width;
    moe_gather(*shape.backend, slots, h, in.x, rows_x);
    products.gate_up(rows_x, gate_up);
    shape.backend->mlp_unit(products.unit(), gate_up, act);
    products.down(act, rows_y);
    moe_scatter(*shape.backend, slots, h, SlotWeights::applied, rows_y, out);
  }
  workspace.rewind(mark);
}

void run_experts_backward(const MoeShape& shape, const ExpertInputs& in,
                          const std::vector<ExpertWeights>& grads,
                          ConstTypedPtr dy, float* d_weight_S, TypedPtr dx,
                          Workspace& workspace) {
  const std::int64_t h = shape.hidden;
  const std::int64_t width = shape.unit.width;
  const auto groups = in.groups(*shape.backend);
  const std::int64_t most = most_rows(groups);
  const Workspace::Mark mark = workspace.mark();
  const TypedPtr rows_x = workspace.take(most * h, shape.storage);
  const TypedPtr rows_dy = workspace.take(most * h, shape.storage);
  const TypedPtr rows_dx = workspace.take(most * h, shape.storage);
  const TypedPtr d_act = workspace.take(most * width, shape.storage);
  const TypedPtr act = workspace.take(most * width, shape.storage);
  for (const ExpertGroup& group : groups) {
    const ExpertProducts products{shape, in.experts, group};
    const RoutedSlots slots{in.routing, group.begin, group.rows()};
    moe_gather(*shape.backend, slots, h, in.x, rows_x);
    moe_gather(*shape.backend, slots, h, dy, rows_dy);
    const ExpertBackward backward{products, grads, slots, d_weight_S};
    backward.run(rows_dy, rows_x, in.gate_up + group.before * 2 * width, d_act,
                 act, rows_dx);
    moe_scatter(*shape.backend, slots, h, SlotWeights::ignored, rows_dx, dx);
  }
  workspace.rewind(mark);
}

} // namespace troupe::models
