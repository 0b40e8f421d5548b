#include "models/transformer/moe.hpp"

#include "models/kernels/host_backend.hpp"
#include "models/kernels/linear.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::models {

namespace {

// Computes a softmax over the chosen logits, in place.
void moe_softmax(float* logits, std::int64_t count) {
  const float top = *std::max_element(logits, logits + count);
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    logits[i] = std::exp(logits[i] - top);
    sum += logits[i];
  }
  for (std::int64_t i = 0; i < count; ++i)
    logits[i] /= sum;
}

// Appends the softmax over all experts of one token; returns it.
const float* append_shares(const float* logits, std::int64_t experts,
                           Routing& routing) {
  auto& all = routing.shares_TE;
  all.insert(all.end(), logits, logits + experts);
  float* shares = all.data() + all.size() - experts;
  moe_softmax(shares, experts);
  return shares;
}

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

// Computes the gradient of the router's logits [T, E] from that of slots'
// weights: d logit_e = share_e (d weight_e - sum over chosen c of weight_c d
// weight_c), where experts that are not chosen have d weight 0, and no share if
// weights are renormalized.
void moe_router_gradient(const MoeShape& shape, const Routing& routing,
                         const float* d_weight_S, std::int64_t experts,
                         float* d_logits_TE) {
  std::vector<float> mean_T(static_cast<std::size_t>(shape.tokens), 0.0F);
  for (std::size_t s = 0; s < routing.token_S.size(); ++s)
    mean_T[static_cast<std::size_t>(routing.token_S[s])]
      += routing.weight_S[s] * d_weight_S[s];
  if (routing.shares_TE.empty())
    std::fill_n(d_logits_TE, shape.tokens * experts, 0.0F);
  else
    for (std::size_t i = 0; i < routing.shares_TE.size(); ++i)
      d_logits_TE[i]
        = -routing.shares_TE[i] * mean_T[i / static_cast<std::size_t>(experts)];
  for (std::int64_t e = 0; e < experts; ++e)
    for (auto s = static_cast<std::size_t>(
           routing.begin_E[static_cast<std::size_t>(e)]);
         s < static_cast<std::size_t>(
           routing.begin_E[static_cast<std::size_t>(e) + 1]);
         ++s) {
      const std::int64_t t = routing.token_S[s];
      d_logits_TE[t * experts + e]
        = routing.weight_S[s]
          * (d_weight_S[s] - mean_T[static_cast<std::size_t>(t)]);
    }
}

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

Routing route(const MoeShape& shape, const float* logits_TE,
              std::int64_t experts) {
  const auto k = static_cast<std::size_t>(shape.chosen);
  std::vector<std::vector<std::pair<std::int32_t, float>>> by_expert(
    static_cast<std::size_t>(experts));
  std::vector<std::int64_t> order(static_cast<std::size_t>(experts));
  std::vector<float> best(k);
  Routing routing;
  if (!shape.renormalized) // pointers to shares stay valid
    routing.shares_TE.reserve(static_cast<std::size_t>(shape.tokens * experts));
  for (std::int64_t t = 0; t < shape.tokens; ++t) {
    const float* logits = logits_TE + t * experts;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k),
      order.end(), [&](std::int64_t a, std::int64_t b) {
        return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
      });
    const float* shares
      = shape.renormalized ? logits : append_shares(logits, experts, routing);
    for (std::size_t i = 0; i < k; ++i)
      best[i] = shares[order[i]];
    if (shape.renormalized)
      moe_softmax(best.data(), shape.chosen);
    for (std::size_t i = 0; i < k; ++i)
      by_expert[static_cast<std::size_t>(order[i])].emplace_back(
        static_cast<std::int32_t>(t), best[i]);
  }
  routing.begin_E.push_back(0);
  for (const auto& slots : by_expert) {
    for (const auto& [token, weight] : slots) {
      routing.token_S.push_back(token);
      routing.weight_S.push_back(weight);
    }
    routing.begin_E.push_back(
      static_cast<std::int64_t>(routing.token_S.size()));
  }
  return routing;
}

void moe_forward(const MoeShape& shape, const MoeWeights& weights,
                 const float* x_TH, Routing& routing, float* gate_up_SX,
                 float* out_TH, Workspace& workspace) {
  const auto experts = static_cast<std::int64_t>(weights.experts.size());
  const std::int64_t h = shape.hidden;
  const std::int64_t width = shape.unit.width;
  const Workspace::Mark mark = workspace.mark();
  float* logits = workspace.take(shape.tokens * experts);
  float* rows_x = workspace.take(shape.tokens * h);
  float* rows_y = workspace.take(shape.tokens * h);
  float* act = workspace.take(shape.tokens * width);
  linear(host_backend(), shape.tokens, {x_TH, h}, weights.router, {},
         {logits, experts});
  routing = route(shape, logits, experts);
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
  const auto experts = static_cast<std::int64_t>(weights.experts.size());
  const std::int64_t h = shape.hidden;
  const std::int64_t width = shape.unit.width;
  const Workspace::Mark mark = workspace.mark();
  float* d_weight_S = workspace.take(shape.slots());
  float* d_logits = workspace.take(shape.tokens * experts);
  float* rows_x = workspace.take(shape.tokens * h);
  float* rows_dy = workspace.take(shape.tokens * h);
  float* rows_dx = workspace.take(shape.tokens * h);
  float* d_act = workspace.take(shape.tokens * width);
  float* act = workspace.take(shape.tokens * width);
  std::fill_n(dx_TH, shape.tokens * h, 0.0F);
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
  moe_router_gradient(shape, routing, d_weight_S, experts, d_logits);
  linear_grad_weight(host_backend(), shape.tokens, {d_logits, experts},
                     {x_TH, h}, grads.router);
  linear_grad_input(host_backend(), shape.tokens, {d_logits, experts},
                    weights.router, {dx_TH, h}, /*accumulate=*/true);
  workspace.rewind(mark);
}

} // namespace troupe::models
