#include "models/transformer/moe.hpp"

#include "models/kernels/host_backend.hpp"
#include "models/kernels/linear.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

void moe_gate_up(const ExpertWeights& w, ProductRows rows, std::int64_t hidden,
                 std::int64_t width, const float* x, float* out) {
  if (w.gate_up.defined())
    return linear(host_backend(), rows, {x, hidden}, w.gate_up, {},
                  {out, 2 * width});
  linear(host_backend(), rows, {x, hidden}, w.gate, {}, {out, 2 * width});
  linear(host_backend(), rows, {x, hidden}, w.up, {}, {out + width, 2 * width});
}

/// The experts of this device and the rows that go to them.
struct ExpertInputs {
  const std::vector<ExpertWeights>& experts;
  const Routing& routing;
  std::int64_t first = 0; ///< index of the first expert in the routing
  const float* x = nullptr;
  float* gate_up = nullptr;
};

std::int64_t most_rows(const std::vector<ExpertSlots>& slots) {
  std::int64_t most = 0;
  for (const ExpertSlots& own : slots)
    most = std::max(most, own.rows);
  return most;
}

struct ExpertBackward {
  const MoeShape& shape;
  const Routing& routing;
  const ExpertWeights& w;
  const ExpertWeights& g;
  std::int64_t begin;
  std::int64_t rows;
  float* d_weight_S;

  MlpShape unit() const {
    MlpShape s = shape.unit;
    s.rows = rows;
    return s;
  }

  /// Computes dx [n, H] from dy [n, H] and x [n, H], gathered; consumes gate_up
  /// [n, 2I]; d_act and act have room for [n, I].
  void run(float* dy, const float* x, float* gate_up, float* d_act, float* act,
           float* dx) const {
    const std::int64_t h = shape.hidden;
    const std::int64_t width = shape.unit.width;
    const ProductRows products{rows, shape.operands};
    linear_grad_input(host_backend(), products, {dy, h}, w.down,
                      {d_act, width});
    mlp_unit(unit(), gate_up, act);
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto slot = static_cast<std::size_t>(begin + i);
      float dot = 0; // of dy and the expert's output
      for (std::int64_t j = 0; j < width; ++j)
        dot += d_act[i * width + j] * act[i * width + j];
      d_weight_S[slot] = dot;
      const float factor = routing.weight_S[slot];
      for (std::int64_t j = 0; j < width; ++j)
        d_act[i * width + j] *= factor;
      for (std::int64_t j = 0; j < h; ++j)
        dy[i * h + j] *= factor;
    }
    mlp_unit_backward(unit(), gate_up, d_act);
    linear_grad_weight(host_backend(), products, {dy, h}, {d_act, width},
                       g.down);
    linear_grad_weight(host_backend(), products, {gate_up, 2 * width}, {x, h},
                       g.gate);
    linear_grad_weight(host_backend(), products, {gate_up + width, 2 * width},
                       {x, h}, g.up);
    linear_grad_input(host_backend(), products, {gate_up, 2 * width}, w.gate,
                      {dx, h});
    linear_grad_input(host_backend(), products, {gate_up + width, 2 * width},
                      w.up, {dx, h}, /*accumulate=*/true);
  }
};

} // namespace

void moe_gather(const Routing& routing, std::int64_t begin, std::int64_t rows,
                std::int64_t width, const float* x, float* out) {
  for (std::int64_t i = 0; i < rows; ++i)
    std::copy_n(
      x + routing.token_S[static_cast<std::size_t>(begin + i)] * width, width,
      out + i * width);
}

void moe_scatter(const Routing& routing, std::int64_t begin, std::int64_t rows,
                 std::int64_t width, bool weighted, const float* from,
                 float* out) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto slot = static_cast<std::size_t>(begin + i);
    const float factor = weighted ? routing.weight_S[slot] : 1.0F;
    float* to = out + routing.token_S[slot] * width;
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j)
      to[j] += factor * from[i * width + j];
  }
}

namespace {

/// Adds weight * expert(x) of each slot to out[token].
void run_experts(const MoeShape& shape, const ExpertInputs& in, float* out,
                 Workspace& workspace) {
  const std::int64_t h = shape.hidden;
  const std::int64_t width = shape.unit.width;
  const auto all = in.routing.slots_of(in.first, in.experts.size());
  const std::int64_t most = most_rows(all);
  const Workspace::Mark mark = workspace.mark();
  float* rows_x = workspace.take(most * h);
  float* rows_y = workspace.take(most * h);
  float* act = workspace.take(most * width);
  for (const ExpertSlots& slots : all) {
    const ExpertWeights& w = in.experts[slots.index];
    float* gate_up = in.gate_up + slots.before * 2 * width;
    moe_gather(in.routing, slots.begin, slots.rows, h, in.x, rows_x);
    moe_gate_up(w, {slots.rows, shape.operands}, h, width, rows_x, gate_up);
    MlpShape unit = shape.unit;
    unit.rows = slots.rows;
    mlp_unit(unit, gate_up, act);
    linear(host_backend(), {slots.rows, shape.operands}, {act, width}, w.down,
           {}, {rows_y, h});
    moe_scatter(in.routing, slots.begin, slots.rows, h, /*weighted=*/true,
                rows_y, out);
  }
  workspace.rewind(mark);
}

/// Adds to the experts' gradients and to dx, and sets d_weight_S of these
/// experts' slots.
void run_experts_backward(const MoeShape& shape, const ExpertInputs& in,
                          const std::vector<ExpertWeights>& grads,
                          const float* dy, float* d_weight_S, float* dx,
                          Workspace& workspace) {
  const std::int64_t h = shape.hidden;
  const std::int64_t width = shape.unit.width;
  const auto all = in.routing.slots_of(in.first, in.experts.size());
  const std::int64_t most = most_rows(all);
  const Workspace::Mark mark = workspace.mark();
  float* rows_x = workspace.take(most * h);
  float* rows_dy = workspace.take(most * h);
  float* rows_dx = workspace.take(most * h);
  float* d_act = workspace.take(most * width);
  float* act = workspace.take(most * width);
  for (const ExpertSlots& slots : all) {
    moe_gather(in.routing, slots.begin, slots.rows, h, in.x, rows_x);
    moe_gather(in.routing, slots.begin, slots.rows, h, dy, rows_dy);
    const ExpertBackward expert{shape,
                                in.routing,
                                in.experts[slots.index],
                                grads[slots.index],
                                slots.begin,
                                slots.rows,
                                d_weight_S};
    expert.run(rows_dy, rows_x, in.gate_up + slots.before * 2 * width, d_act,
               act, rows_dx);
    moe_scatter(in.routing, slots.begin, slots.rows, h, /*weighted=*/false,
                rows_dx, dx);
  }
  workspace.rewind(mark);
}

/// Gathers the rows of x [T, H] of the slots that the group computes, in the
/// order in which they are sent.
float* gather_out(const MoeShape& shape, const RoutedTokens& routed,
                  const float* x_TH, Workspace& workspace) {
  float* out = workspace.take(routed.rows.num_out() * shape.hidden);
  float* at = out;
  for (const ExpertRows::Run& run : routed.rows.out_D) {
    moe_gather(routed.routing, run.begin, run.rows, shape.hidden, x_TH, at);
    at += run.rows * shape.hidden;
  }
  return out;
}

/// Adds the rows that came back, times their weights if `weighted`, to
/// out[token].
void scatter_back(const MoeShape& shape, const RoutedTokens& routed,
                  bool weighted, const float* rows_SH, float* out_TH) {
  for (const ExpertRows::Run& run : routed.rows.out_D) {
    moe_scatter(routed.routing, run.begin, run.rows, shape.hidden, weighted,
                rows_SH, out_TH);
    rows_SH += run.rows * shape.hidden;
  }
}

float* take_zeros(std::int64_t count, Workspace& workspace) {
  float* zeros = workspace.take(count);
  std::fill_n(zeros, count, 0.0F);
  return zeros;
}

void exchanged_forward(const MoeShape& shape, const MoeWeights& weights,
                       const RoutedTokens& routed, float* out_TH,
                       Workspace& workspace) {
  const ExpertRows& rows = routed.rows;
  const Workspace::Mark mark = workspace.mark();
  float* y_RH = take_zeros(rows.num_in() * shape.hidden, workspace);
  run_experts(
    shape, {weights.experts, rows.here, 0, routed.inputs_RH, routed.gate_up_RX},
    y_RH, workspace);
  float* y_SH = workspace.take(rows.num_out() * shape.hidden);
  return_rows(shape.peers, rows, shape.hidden, y_RH, y_SH);
  scatter_back(shape, routed, /*weighted=*/true, y_SH, out_TH);
  workspace.rewind(mark);
}

/// Sends the slots' weights and the gradients of their outputs to the experts;
/// gets the gradients of weights and inputs back.
void exchanged_backward(const MoeShape& shape, const MoeWeights& weights,
                        const RoutedTokens& routed, const float* dy_TH,
                        const MoeWeights& grads, float* d_weight_S,
                        float* dx_TH, Workspace& workspace) {
  const ExpertRows& rows = routed.rows;
  const std::int64_t h = shape.hidden;
  const Workspace::Mark mark = workspace.mark();
  float* dy_RH = workspace.take(rows.num_in() * h);
  send_rows(shape.peers, rows, h, gather_out(shape, routed, dy_TH, workspace),
            dy_RH);
  std::vector<float> out; // of the slots that are sent
  for (const ExpertRows::Run& run : rows.out_D)
    out.insert(out.end(), routed.routing.weight_S.begin() + run.begin,
               routed.routing.weight_S.begin() + run.begin + run.rows);
  std::vector<float> in(static_cast<std::size_t>(rows.num_in()));
  send_rows(shape.peers, rows, 1, out.data(), in.data());
  Routing here = rows.here;
  for (std::size_t s = 0; s < in.size(); ++s)
    here.weight_S[s] = in[static_cast<std::size_t>(here.token_S[s])];
  std::vector<float> d_weight_here(in.size());
  float* dx_RH = take_zeros(rows.num_in() * h, workspace);
  run_experts_backward(
    shape, {weights.experts, here, 0, routed.inputs_RH, routed.gate_up_RX},
    grads.experts, dy_RH, d_weight_here.data(), dx_RH, workspace);
  for (std::size_t s = 0; s < in.size(); ++s)
    in[static_cast<std::size_t>(here.token_S[s])] = d_weight_here[s];
  return_rows(shape.peers, rows, 1, in.data(), out.data());
  auto at = out.begin();
  for (const ExpertRows::Run& run : rows.out_D) {
    std::copy_n(at, run.rows, d_weight_S + run.begin);
    at += run.rows;
  }
  float* dx_SH = workspace.take(rows.num_out() * h);
  return_rows(shape.peers, rows, h, dx_RH, dx_SH);
  scatter_back(shape, routed, /*weighted=*/false, dx_SH, dx_TH);
  workspace.rewind(mark);
}

Routing routed_by(const MoeShape& shape, const MoeWeights& weights,
                  const float* x_TH, Workspace& workspace) {
  const std::int64_t tokens = shape.router.tokens;
  const std::int64_t experts = shape.router.experts;
  const Workspace::Mark mark = workspace.mark();
  float* logits = workspace.take(tokens * experts);
  linear(host_backend(), tokens, {x_TH, shape.hidden}, weights.router, {},
         {logits, experts});
  Routing routing = route(shape.router, logits, weights.correction_E());
  workspace.rewind(mark);
  return routing;
}

} // namespace

void moe_choose(const MoeShape& shape, const MoeWeights& weights,
                const float* x_TH, RoutedTokens& routed, Workspace& workspace) {
  routed.routing = routed_by(shape, weights, x_TH, workspace);
  const std::int64_t columns = shape.unit.columns();
  if (!shape.peers.exist()) {
    const auto first = static_cast<std::size_t>(weights.first_expert);
    const std::int64_t slots
      = routed.routing.begin_E[first + weights.experts.size()]
        - routed.routing.begin_E[first];
    routed.gate_up_RX = workspace.take(slots * columns);
    return;
  }
  routed.rows = plan_rows(shape.peers, routed.routing);
  routed.gate_up_RX = workspace.take(routed.rows.num_in() * columns);
  routed.inputs_RH = workspace.take(routed.rows.num_in() * shape.hidden);
  const Workspace::Mark mark = workspace.mark();
  send_rows(shape.peers, routed.rows, shape.hidden,
            gather_out(shape, routed, x_TH, workspace), routed.inputs_RH);
  workspace.rewind(mark);
}

void moe_forward(const MoeShape& shape, const MoeWeights& weights,
                 const float* x_TH, const RoutedTokens& routed, float* out_TH,
                 Workspace& workspace) {
  if (shape.peers.exist())
    return exchanged_forward(shape, weights, routed, out_TH, workspace);
  run_experts(shape,
              {weights.experts, routed.routing, weights.first_expert, x_TH,
               routed.gate_up_RX},
              out_TH, workspace);
}

void moe_backward(const MoeShape& shape, const MoeWeights& weights,
                  const float* x_TH, const RoutedTokens& routed,
                  const float* dy_TH, const MoeWeights& grads, float* dx_TH,
                  Workspace& workspace,
                  const std::function<void(float*)>& add_router_loss) {
  const std::int64_t tokens = shape.router.tokens;
  const std::int64_t experts = shape.router.experts;
  const Workspace::Mark mark = workspace.mark();
  // zero for slots of experts that other tp ranks have
  float* d_weight_S = take_zeros(shape.router.slots(), workspace);
  float* d_logits = workspace.take(tokens * experts);
  if (shape.peers.exist())
    exchanged_backward(shape, weights, routed, dy_TH, grads, d_weight_S, dx_TH,
                       workspace);
  else
    run_experts_backward(shape,
                         {weights.experts, routed.routing, weights.first_expert,
                          x_TH, routed.gate_up_RX},
                         grads.experts, dy_TH, d_weight_S, dx_TH, workspace);
  route_backward(shape.router, routed.routing, d_weight_S, d_logits);
  if (add_router_loss)
    add_router_loss(d_logits);
  linear_grad_weight(host_backend(), tokens, {d_logits, experts},
                     {x_TH, shape.hidden}, grads.router);
  linear_grad_input(host_backend(), tokens, {d_logits, experts}, weights.router,
                    {dx_TH, shape.hidden}, /*accumulate=*/true);
  workspace.rewind(mark);
}

} // namespace troupe::models
