#include "models/transformer/moe.hpp"

#include "models/kernels/backend.hpp"
#include "models/kernels/linear.hpp"
#include "models/kernels/typed_tensor.hpp"
#include "models/transformer/device_dispatch.hpp"
#include "models/transformer/expert_runs.hpp"

#include <utility>

namespace troupe::models {

void moe_gather(Backend& backend, const RoutedSlots& slots, std::int64_t width,
                ConstTypedPtr x, TypedPtr out) {
  const auto rows = slots.tokens();
  backend.gather_rows({rows, width}, x, out);
}

void moe_scatter(Backend& backend, const RoutedSlots& slots, std::int64_t width,
                 SlotWeights weights, ConstTypedPtr from, TypedPtr out) {
  const auto rows = slots.tokens();
  RowList list{rows, width};
  if (weights == SlotWeights::applied)
    list.weights = slots.weights();
  backend.scatter_rows(list, from, out);
}

namespace {

/// Returns numbers of the device in fp32.
const float* in_fp32(Backend& backend, ConstTypedPtr x, std::int64_t count,
                     Workspace& workspace) {
  if (x.type() == DType::f32)
    return x.floats();
  float* wide = workspace.take(count);
  backend.copy(x, wide, count);
  return wide;
}

using Exchange = void (*)(const ExpertPeers& peers, const ExpertRows& rows,
                          std::int64_t width, const float* from, float* to);

/// Exchanges rows of the device, [count_from, width] to [count_to, width],
/// between the ranks' hosts, in fp32.
void exchange(const MoeShape& shape, Exchange how, const ExpertRows& rows,
              WholeRows from_shape, ConstTypedPtr from, std::int64_t count_to,
              TypedPtr to, Workspace& workspace) {
  const std::int64_t width = from_shape.width;
  const Workspace::Mark mark = workspace.mark();
  Backend& backend = *shape.backend;
  const std::int64_t count = from_shape.rows * width;
  const auto sent
    = backend.read(in_fp32(backend, from, count, workspace), count);
  float* wide
    = to.type() == DType::f32 ? to.floats() : workspace.take(count_to * width);
  const auto received
    = backend.change(wide, count_to * width, net::OldContent::ignored);
  how(shape.peers, rows, width, sent.floats(), received.floats());
  received.put_back();
  if (to.type() != DType::f32)
    backend.copy(wide, to, count_to * width);
  workspace.rewind(mark);
}

/// Sends the rows of tokens to the experts.
void send_rows(const MoeShape& shape, const ExpertRows& rows,
               std::int64_t width, ConstTypedPtr from, TypedPtr to,
               Workspace& workspace) {
  exchange(shape, models::send_rows, rows, {rows.num_out(), width}, from,
           rows.num_in(), to, workspace);
}

/// Returns the rows of experts to the tokens.
void return_rows(const MoeShape& shape, const ExpertRows& rows,
                 std::int64_t width, ConstTypedPtr from, TypedPtr to,
                 Workspace& workspace) {
  exchange(shape, models::return_rows, rows, {rows.num_in(), width}, from,
           rows.num_out(), to, workspace);
}

/// Gathers the rows of x [T, H] of the slots that the group computes, in the
/// order in which they are sent.
TypedPtr gather_out(const MoeShape& shape, const RoutedTokens& routed,
                    ConstTypedPtr x_TH, Workspace& workspace) {
  const TypedPtr out
    = workspace.take(routed.rows.num_out() * shape.hidden, shape.storage);
  TypedPtr at = out;
  for (const ExpertRows::Run& run : routed.rows.out_D) {
    moe_gather(*shape.backend, {routed.routing, run.begin, run.rows},
               shape.hidden, x_TH, at);
    at = at + run.rows * shape.hidden;
  }
  return out;
}

/// Adds the rows that came back, times their weights if asked to, to
/// out[token].
void scatter_back(const MoeShape& shape, const RoutedTokens& routed,
                  SlotWeights weights, ConstTypedPtr rows_SH, TypedPtr out_TH) {
  for (const ExpertRows::Run& run : routed.rows.out_D) {
    moe_scatter(*shape.backend, {routed.routing, run.begin, run.rows},
                shape.hidden, weights, rows_SH, out_TH);
    rows_SH = rows_SH + run.rows * shape.hidden;
  }
}

TypedPtr take_zeros(Backend& backend, std::int64_t count, DType type,
                    Workspace& workspace) {
  const TypedPtr zeros = workspace.take(count, type);
  backend.fill(zeros, count, 0.0F);
  return zeros;
}

void exchanged_forward(const MoeShape& shape, const MoeWeights& weights,
                       const RoutedTokens& routed, TypedPtr out_TH,
                       Workspace& workspace) {
  const ExpertRows& rows = routed.rows;
  const Workspace::Mark mark = workspace.mark();
  const TypedPtr y_RH = take_zeros(*shape.backend, rows.num_in() * shape.hidden,
                                   shape.storage, workspace);
  run_experts(
    shape, {weights.experts, rows.here, 0, routed.inputs_RH, routed.gate_up_RX},
    y_RH, workspace);
  const TypedPtr y_SH
    = workspace.take(rows.num_out() * shape.hidden, shape.storage);
  return_rows(shape, rows, shape.hidden, y_RH, y_SH, workspace);
  scatter_back(shape, routed, SlotWeights::applied, y_SH, out_TH);
  workspace.rewind(mark);
}

/// Sends the slots' weights and the gradients of their outputs to the experts;
/// gets the gradients of weights and inputs back.
void exchanged_backward(const MoeShape& shape, const MoeWeights& weights,
                        const RoutedTokens& routed, ConstTypedPtr dy_TH,
                        const MoeWeights& grads, float* d_weight_S,
                        TypedPtr dx_TH, Workspace& workspace) {
  const ExpertRows& rows = routed.rows;
  const std::int64_t h = shape.hidden;
  const Workspace::Mark mark = workspace.mark();
  const TypedPtr dy_RH = workspace.take(rows.num_in() * h, shape.storage);
  send_rows(shape, rows, h, gather_out(shape, routed, dy_TH, workspace), dy_RH,
            workspace);
  std::vector<float> out; // of the slots that are sent
  for (const ExpertRows::Run& run : rows.out_D)
    out.insert(out.end(), routed.routing.weight_S.begin() + run.begin,
               routed.routing.weight_S.begin() + run.begin + run.rows);
  std::vector<float> in(static_cast<std::size_t>(rows.num_in()));
  send_rows(shape.peers, rows, 1, out.data(), in.data());
  Routing here = rows.here;
  for (std::size_t s = 0; s < in.size(); ++s)
    here.weight_S[s] = in[static_cast<std::size_t>(here.token_S[s])];
  float* d_weight_here = workspace.take(rows.num_in());
  const TypedPtr dx_RH
    = take_zeros(*shape.backend, rows.num_in() * h, shape.storage, workspace);
  run_experts_backward(
    shape, {weights.experts, here, 0, routed.inputs_RH, routed.gate_up_RX},
    grads.experts, dy_RH, d_weight_here, dx_RH, workspace);
  const auto found = shape.backend->read(d_weight_here, rows.num_in());
  for (std::size_t s = 0; s < in.size(); ++s)
    in[static_cast<std::size_t>(here.token_S[s])] = found.floats()[s];
  return_rows(shape.peers, rows, 1, in.data(), out.data());
  const float* at = out.data();
  for (const ExpertRows::Run& run : rows.out_D) {
    shape.backend->write(at, d_weight_S + run.begin,
                         static_cast<std::size_t>(run.rows) * sizeof(float));
    at += run.rows;
  }
  const TypedPtr dx_SH = workspace.take(rows.num_out() * h, shape.storage);
  return_rows(shape, rows, h, dx_RH, dx_SH, workspace);
  scatter_back(shape, routed, SlotWeights::ignored, dx_SH, dx_TH);
  workspace.rewind(mark);
}

/// Computes the gradient of logits on the device if it has a kernel for it.
bool routed_backward(const MoeShape& shape, const RoutedTokens& routed,
                     const float* d_weight_S, float* d_logits_TE) {
  if (routed.on_device) {
    shape.backend->dispatch_backward(routed.on_device->routing, d_weight_S,
                                     d_logits_TE);
    return true;
  }
  const Routing& routing = routed.routing;
  const std::vector<std::int64_t> slot_TK = routing.slots_of_tokens();
  return shape.backend->choice_backward(
    choice_of(shape.router),
    {routing.chosen_TK, slot_TK, routing.weight_S, routing.scores_TE},
    d_weight_S, d_logits_TE);
}

/// Chooses the experts of tokens: on the device alone, or for the host.
void choose(const MoeShape& shape, const MoeWeights& weights,
            ConstTypedPtr x_TH, RoutedTokens& routed, Workspace& workspace) {
  const std::int64_t tokens = shape.router.tokens;
  const std::int64_t experts = shape.router.experts;
  const Workspace::Mark mark = workspace.mark();
  float* logits = workspace.take(tokens * experts);
  linear(*shape.backend, tokens, {x_TH, shape.hidden}, weights.router, {},
         {logits, experts});
  if (dispatches(shape, weights)) {
    dispatch(shape, weights.correction, logits, routed);
  } else {
    routed.on_device.reset();
    routed.routing
      = route(*shape.backend, shape.router, logits, weights.correction);
  }
  workspace.rewind(mark);
}

} // namespace

Routing route(Backend& backend, const RouterShape& shape, const float* logits,
              const at::Tensor& correction_E) {
  if (shape.replayed.first == nullptr)
    if (auto chosen = backend.choose_experts(choice_of(shape), logits,
                                             numbers_of(correction_E).floats()))
      return routing_of(shape, std::move(*chosen));
  const auto of_host = backend.read(logits, shape.tokens * shape.experts);
  if (!correction_E.defined())
    return route(shape, of_host.floats(), nullptr);
  const auto correction
    = backend.read(correction_E.const_data_ptr<float>(), shape.experts);
  return route(shape, of_host.floats(), correction.floats());
}

void moe_choose(const MoeShape& shape, const MoeWeights& weights,
                ConstTypedPtr x_TH, RoutedTokens& routed,
                Workspace& workspace) {
  choose(shape, weights, x_TH, routed, workspace);
  const std::int64_t columns = shape.unit.columns();
  if (routed.on_device) {
    routed.gate_up_RX
      = routed.is_kept
          ? workspace.take(shape.router.slots() * columns, shape.storage)
          : TypedPtr{};
    return;
  }
  if (!shape.peers.exist()) {
    const auto first = static_cast<std::size_t>(weights.first_expert);
    const std::int64_t slots
      = routed.routing.begin_E[first + weights.experts.size()]
        - routed.routing.begin_E[first];
    routed.gate_up_RX = workspace.take(slots * columns, shape.storage);
    return;
  }
  routed.rows = plan_rows(shape.peers, routed.routing);
  routed.gate_up_RX
    = workspace.take(routed.rows.num_in() * columns, shape.storage);
  routed.inputs_RH
    = workspace.take(routed.rows.num_in() * shape.hidden, shape.storage);
  const Workspace::Mark mark = workspace.mark();
  send_rows(shape, routed.rows, shape.hidden,
            gather_out(shape, routed, x_TH, workspace), routed.inputs_RH,
            workspace);
  workspace.rewind(mark);
}

void moe_forward(const MoeShape& shape, const MoeWeights& weights,
                 ConstTypedPtr x_TH, const RoutedTokens& routed,
                 TypedPtr out_TH, Workspace& workspace) {
  if (routed.on_device)
    return forward_on_device(shape, weights, x_TH, routed, out_TH);
  if (shape.peers.exist())
    return exchanged_forward(shape, weights, routed, out_TH, workspace);
  run_experts(shape,
              {weights.experts, routed.routing, weights.first_expert, x_TH,
               routed.gate_up_RX},
              out_TH, workspace);
}

void moe_backward(const MoeShape& shape, const MoeWeights& weights,
                  ConstTypedPtr x_TH, const RoutedTokens& routed,
                  ConstTypedPtr dy_TH, const MoeWeights& grads, TypedPtr dx_TH,
                  Workspace& workspace,
                  const std::function<void(float*)>& add_router_loss) {
  const std::int64_t tokens = shape.router.tokens;
  const std::int64_t experts = shape.router.experts;
  const Workspace::Mark mark = workspace.mark();
  const std::int64_t slots = shape.router.slots();
  float* d_weight_S // zero for slots of experts that other tp ranks have
    = take_zeros(*shape.backend, slots, DType::f32, workspace).floats();
  float* d_logits = workspace.take(tokens * experts);
  if (routed.on_device)
    backward_on_device(shape, weights, x_TH, routed, dy_TH, grads, d_weight_S,
                       dx_TH);
  else if (shape.peers.exist())
    exchanged_backward(shape, weights, routed, dy_TH, grads, d_weight_S, dx_TH,
                       workspace);
  else
    run_experts_backward(shape,
                         {weights.experts, routed.routing, weights.first_expert,
                          x_TH, routed.gate_up_RX},
                         grads.experts, dy_TH, d_weight_S, dx_TH, workspace);
  if (add_router_loss
      || !routed_backward(shape, routed, d_weight_S, d_logits)) {
    const auto d_weights = shape.backend->read(d_weight_S, slots);
    const auto of_host = shape.backend->change(d_logits, tokens * experts,
                                               net::OldContent::ignored);
    route_backward(shape.router, routed.routing, d_weights.floats(),
                   of_host.floats());
    if (add_router_loss)
      add_router_loss(of_host.floats());
    of_host.put_back();
  }
  linear_grad_weight(*shape.backend, tokens, {d_logits, experts},
                     {x_TH, shape.hidden}, grads.router);
  linear_grad_input(*shape.backend, tokens, {d_logits, experts}, weights.router,
                    {dx_TH, shape.hidden}, /*accumulate=*/true);
  workspace.rewind(mark);
}

} // namespace troupe::models
