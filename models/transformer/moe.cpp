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

void moe_forward(const MoeShape& shape, const MoeWeights& weights,
                 const float* x_TH, Routing& routing, float* gate_up_SX,
                 float* out_TH, Workspace& workspace) {
  const std::int64_t tokens = shape.router.tokens;
  const std::int64_t experts = shape.router.experts;
  const std::int64_t h = shape.hidden;
  const std::int64_t width = shape.unit.width;
  const Workspace::Mark mark = workspace.mark();
  float* logits = workspace.take(tokens * experts);
  float* rows_x = workspace.take(tokens * h);
  float* rows_y = workspace.take(tokens * h);
  float* act = workspace.take(tokens * width);
  linear(host_backend(), tokens, {x_TH, h}, weights.router, {},
         {logits, experts});
  routing = route(shape.router, logits, weights.correction_E());
  for (std::int64_t e = 0; e < experts; ++e) {
    const auto at = static_cast<std::size_t>(e);
    const std::int64_t begin = routing.begin_E[at];
    const std::int64_t rows = routing.begin_E[at + 1] - begin;
    if (rows == 0)
      continue;
    const ExpertWeights& w = weights.experts[at];
    float* gate_up = gate_up_SX + begin * 2 * width;
    moe_gather(routing, begin, rows, h, x_TH, rows_x);
    moe_gate_up(w, {rows, shape.operands}, h, width, rows_x, gate_up);
    MlpShape unit = shape.unit;
    unit.rows = rows;
    mlp_unit(unit, gate_up, act);
    linear(host_backend(), {rows, shape.operands}, {act, width}, w.down, {},
           {rows_y, h});
    moe_scatter(routing, begin, rows, h, /*weighted=*/true, rows_y, out_TH);
  }
  workspace.rewind(mark);
}

void moe_backward(const MoeShape& shape, const MoeWeights& weights,
                  const float* x_TH, const Routing& routing, float* gate_up_SX,
                  const float* dy_TH, const MoeWeights& grads, float* dx_TH,
                  Workspace& workspace) {
  const std::int64_t tokens = shape.router.tokens;
  const std::int64_t experts = shape.router.experts;
  const std::int64_t h = shape.hidden;
  const std::int64_t width = shape.unit.width;
  const Workspace::Mark mark = workspace.mark();
  float* d_weight_S = workspace.take(shape.router.slots());
  float* d_logits = workspace.take(tokens * experts);
  float* rows_x = workspace.take(tokens * h);
  float* rows_dy = workspace.take(tokens * h);
  float* rows_dx = workspace.take(tokens * h);
  float* d_act = workspace.take(tokens * width);
  float* act = workspace.take(tokens * width);
  for (std::int64_t e = 0; e < experts; ++e) {
    const auto at = static_cast<std::size_t>(e);
    const std::int64_t begin = routing.begin_E[at];
    const std::int64_t rows = routing.begin_E[at + 1] - begin;
    if (rows == 0)
      continue;
    moe_gather(routing, begin, rows, h, x_TH, rows_x);
    moe_gather(routing, begin, rows, h, dy_TH, rows_dy);
    const ExpertBackward expert{
      shape, routing, weights.experts[at], grads.experts[at],
      begin, rows,    d_weight_S};
    expert.run(rows_dy, rows_x, gate_up_SX + begin * 2 * width, d_act, act,
               rows_dx);
    moe_scatter(routing, begin, rows, h, /*weighted=*/false, rows_dx, dx_TH);
  }
  route_backward(shape.router, routing, d_weight_S, d_logits);
  linear_grad_weight(host_backend(), tokens, {d_logits, experts}, {x_TH, h},
                     grads.router);
  linear_grad_input(host_backend(), tokens, {d_logits, experts}, weights.router,
                    {dx_TH, h}, /*accumulate=*/true);
  workspace.rewind(mark);
}

} // namespace troupe::models
