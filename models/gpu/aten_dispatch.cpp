// Experts of aten_backend.hpp whose tokens the device dispatches by itself: in
// pieces of so many slots, whichever experts these are of, since ATen's grouped
// product reads where groups end on the device. Its results are used where they
// are.
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/grouped_weights.hpp"
#include "models/gpu/kernels/choose_experts.hpp"
#include "models/gpu/kernels/expert_unit_backward.hpp"
#include "models/gpu/kernels/join_experts.hpp"
#include "models/gpu/own_kernels.hpp"
#include "models/gpu/stored_type.hpp"
#include "models/kernels/typed_tensor.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace troupe::models {

namespace {

/// Returns whether ATen takes these weights of `numbers` as one tensor.
bool are_stacked(GroupedWeights weights, std::int64_t numbers) {
  const std::int64_t step = step_of_weights(weights, numbers);
  return step > 0 && step % aten_vector == 0 && is_aligned_bf16(weights[0]);
}

TypedPtr numbers_in(const at::Tensor& tensor) {
  const ConstTypedPtr numbers = numbers_of(tensor);
  return {const_cast<void*>(numbers.data()), numbers.type()};
}

std::int64_t tensor_bytes(const at::Tensor& tensor) {
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

/// Adds rows [rows, H] of a piece to those of their tokens.
void join_piece(at::Device device, const DeviceRouting& routing,
                std::int64_t piece, const float* weight_S,
                const at::Tensor& from_RH, TypedPtr to_TH) {
  const std::int64_t begin = piece * routing.rows_at_once;
  const std::int64_t tokens = routing.choice.tokens;
  const std::int64_t width = from_RH.size(1);
  const ConstTypedPtr from = numbers_of(from_RH);
  const auto bytes = tensor_bytes(from_RH)
                     + 2 * tokens * width
                         * static_cast<std::int64_t>(size_bytes(to_TH.type()));
  const auto run = [&](auto in, auto out) {
    using Kernel = gpu::JoinExperts<typename decltype(in)::type,
                                    typename decltype(out)::type>;
    gpu::run_kernel(device,
                    Kernel{in.at(from), out.at(to_TH), routing.slot_TK,
                           weight_S, begin, begin + from_RH.size(0),
                           routing.choice.chosen, width},
                    tokens, {"join_experts", bytes});
  };
  TROUPE_CHECK(gpu::with_rows(from.type(), to_TH.type(), run),
               "rows of experts are added to rows of their type or in fp32");
}

/// Overwrites gate and up, d_act and dy of a piece as the kernel does.
void unit_backward(at::Device device, const RoutedExperts& experts,
                   const DeviceRouting& routing, std::int64_t piece,
                   const at::Tensor& gate_up, const at::Tensor& d_act,
                   const at::Tensor& dy, float* d_weight_S) {
  const std::int64_t begin = piece * routing.rows_at_once;
  const TypedPtr in = numbers_in(gate_up);
  const std::int64_t bytes
    = 2 * (tensor_bytes(gate_up) + tensor_bytes(d_act) + tensor_bytes(dy));
  gpu::with_stored(in.type(), [&](auto as) {
    gpu::with_unit(experts.unit.activation, [&](auto unit) {
      using Kernel
        = gpu::ExpertUnitBackward<decltype(unit), typename decltype(as)::type>;
      gpu::run_kernel(device,
                      Kernel{as.at(in), as.at(numbers_in(d_act)),
                             as.at(numbers_in(dy)), routing.weight_S + begin,
                             d_weight_S + begin, experts.unit.width,
                             experts.hidden},
                      gate_up.size(0), {"expert_unit_backward", bytes});
    });
  });
}

/// Adds dy^T x of each group to its gradient [out, in]. The results of all
/// groups at once may be many: they are computed in columns of dy, because the
/// host does not know which rows are whose.
void add_expert_grads(const AtenViews& on, const at::Tensor& dy,
                      const at::Tensor& x, const at::Tensor& ends,
                      GroupedGrads grads) {
  const std::int64_t count = ends.size(0);
  const std::int64_t out = dy.size(1);
  const std::int64_t in = x.size(1);
  const std::vector<ConstTypedPtr> targets(grads.begin(), grads.end());
  const std::int64_t step = step_of_weights(targets, out * in);
  TROUPE_CHECK(step > 0, "gradients of experts lie as their weights do");
  const std::int64_t columns
    = std::max(aten_grouped_numbers / (count * in) / aten_vector,
               std::int64_t{1})
      * aten_vector;
  for (std::int64_t from = 0; from < out; from += columns) {
    const std::int64_t some = std::min(columns, out - from);
    on.view(grads[0] + from * in, {count, some, in}, {{step, in, 1}})
      .add_(at::_grouped_mm(dy.narrow(1, from, some).t(), x, ends));
  }
}

} // namespace

bool AtenBackend::dispatches(const ExpertChoice& choice,
                             const RoutedExperts& experts) const {
  using Join = gpu::JoinExperts<float, float>;
  const std::int64_t h = experts.hidden;
  const std::int64_t width = experts.unit.width;
  return options_.own_kernels && options_.grouped_products
         && choice.chosen <= Join::most_chosen
         && choice.experts <= gpu::ChooseExperts::most_experts
         && choice.rule.groups <= gpu::ChooseExperts::most_groups
         && experts.unit.gated && experts.operands == DType::bf16
         && experts.storage == DType::bf16 && h % aten_vector == 0
         && width % aten_vector == 0
         && are_stacked(experts.gate_up, 2 * width * h)
         && are_stacked(experts.down, width * h);
}

void AtenBackend::experts_forward(const RoutedExperts& experts,
                                  const DeviceRouting& routing,
                                  ConstTypedPtr x_TH, TypedPtr gate_up_SX,
                                  TypedPtr out_TH) {
  const std::int64_t count = routing.choice.experts;
  const std::int64_t h = experts.hidden;
  const std::int64_t width = experts.unit.width;
  const at::Tensor gate_up_w
    = view(experts.gate_up[0], {count, h, 2 * width},
           {{step_of_weights(experts.gate_up, 2 * width * h), 1, h}});
  const at::Tensor down_w
    = view(experts.down[0], {count, width, h},
           {{step_of_weights(experts.down, width * h), 1, width}});
  const at::Tensor x = view(x_TH, {routing.choice.tokens, h});
  for (std::int64_t piece = 0; piece < routing.pieces(); ++piece) {
    const std::int64_t begin = piece * routing.rows_at_once;
    const std::int64_t rows = routing.rows_of(piece);
    const at::Tensor ends
      = view_of_ints(routing.ends_CE + piece * count, {count});
    const at::Tensor gate_up = at::_grouped_mm(
      x.index_select(0, view_of_ints(routing.token_S + begin, {rows})),
      gate_up_w, ends);
    if (gate_up_SX)
      view(gate_up_SX + begin * 2 * width, {rows, 2 * width}).copy_(gate_up);
    const at::Tensor act = at::empty({rows, width}, x.options());
    MlpShape unit = experts.unit;
    unit.rows = rows;
    mlp_unit(unit, numbers_of(gate_up), numbers_in(act));
    join_piece(device_, routing, piece, routing.weight_S,
               at::_grouped_mm(act, down_w, ends), out_TH);
  }
}

void AtenBackend::experts_backward(const RoutedExperts& experts,
                                   const DeviceRouting& routing,
                                   ConstTypedPtr x_TH, TypedPtr gate_up_SX,
                                   ConstTypedPtr dy_TH,
                                   const RoutedGrads& grads, float* d_weight_S,
                                   TypedPtr dx_TH) {
  const std::int64_t count = routing.choice.experts;
  const std::int64_t h = experts.hidden;
  const std::int64_t width = experts.unit.width;
  const at::Tensor gate_up_w
    = view(experts.gate_up[0], {count, 2 * width, h},
           {{step_of_weights(experts.gate_up, 2 * width * h), h, 1}});
  const at::Tensor down_w
    = view(experts.down[0], {count, h, width},
           {{step_of_weights(experts.down, width * h), width, 1}});
  const at::Tensor x = view(x_TH, {routing.choice.tokens, h});
  const at::Tensor all_dy = view(dy_TH, {routing.choice.tokens, h});
  for (std::int64_t piece = 0; piece < routing.pieces(); ++piece) {
    const std::int64_t begin = piece * routing.rows_at_once;
    const std::int64_t rows = routing.rows_of(piece);
    const at::Tensor ends
      = view_of_ints(routing.ends_CE + piece * count, {count});
    const at::Tensor tokens = view_of_ints(routing.token_S + begin, {rows});
    const at::Tensor gate_up
      = view(gate_up_SX + begin * 2 * width, {rows, 2 * width});
    const at::Tensor dy = all_dy.index_select(0, tokens);
    const at::Tensor act = at::_grouped_mm(dy, down_w, ends); // first its d
    unit_backward(device_, experts, routing, piece, gate_up, act, dy,
                  d_weight_S);
    if (grads.down[0] != nullptr)
      add_expert_grads(*this, dy, act, ends, grads.down);
    if (grads.gate_up[0] != nullptr)
      add_expert_grads(*this, gate_up, x.index_select(0, tokens), ends,
                       grads.gate_up);
    join_piece(device_, routing, piece, nullptr,
               at::_grouped_mm(gate_up, gate_up_w, ends), dx_TH);
  }
}

} // namespace troupe::models
