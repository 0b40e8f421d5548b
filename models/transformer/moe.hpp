// A mixture of experts instead of one MLP (Mixtral, Qwen3-MoE, GLM-4.5): the
// router (router.hpp) chooses k experts per token and their weights. Tokens are
// sorted by expert, so that experts are three grouped products over them. Each
// tp rank has all of the router, and a part of each expert's width or, with
// expert parallelism, some experts; its result is a partial sum. Experts of dp
// ranks get their tokens from these (expert_exchange.hpp). A device that has
// all experts dispatches tokens to them itself where it can
// (device_dispatch.hpp); else the host assigns tokens, for which it waits for
// their choice.
//
// T packed tokens, H hidden, E experts, k experts per token, S = T * k slots (a
// token at an expert) in order of expert, I intermediate of an expert.
#pragma once

#include "models/kernels/mlp.hpp"
#include "models/kernels/workspace.hpp"
#include "models/transformer/expert_exchange.hpp"
#include "models/transformer/router.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace troupe::models {

class Backend;

/// One expert's parameters in one plane.
struct ExpertWeights {
  at::Tensor gate;    ///< [I, H]
  at::Tensor up;      ///< [I, H]
  at::Tensor gate_up; ///< [2I, H] if adjacent, or undefined
  at::Tensor down;    ///< [H, I]
};

struct MoeWeights {
  at::Tensor router;     ///< [E, H]
  at::Tensor correction; ///< [E], if the rule has one (RouterRule::corrected)
  std::vector<ExpertWeights> experts; ///< neighbours, those of this device
  std::int64_t first_expert = 0;      ///< index of the first of them
  std::int64_t ordinal = 0;           ///< among the model's layers with experts
};

struct MoeShape {
  Backend* backend = nullptr;
  std::int64_t hidden = 0;     ///< H
  RouterShape router;          ///< T, E, k
  MlpShape unit;               ///< one expert; its `rows` are ignored
  DType operands = DType::f32; ///< of the experts' products, not the router's
  DType storage = DType::f32;  ///< of rows
  ExpertPeers peers;
};

/// The assignment of tokens to experts in the memory of a device.
struct DispatchedTokens {
  AlignedFloats block;
  DeviceRouting routing; ///< in the block
};

/// The experts that a layer's tokens went to, and what backward needs of them.
struct RoutedTokens {
  Routing routing; ///< of `on_device` only what was read (`read_choices`)
  std::optional<DispatchedTokens> on_device; ///< if the device dispatches
  ExpertRows rows;                           ///< if dp ranks share experts
  TypedPtr inputs_RH;  ///< of the experts here; null: the layer's
  TypedPtr gate_up_RX; ///< [rows at the experts here, 2I]
  bool is_kept = true; ///< for backward; if not, a device needs no `gate_up_RX`
};

/// Slots [begin, begin + rows) of a routing, which outlives this.
struct RoutedSlots {
  const Routing& routing;
  std::int64_t begin = 0;
  std::int64_t rows = 0;

  /// Returns the token of each slot.
  std::vector<std::int64_t> tokens() const {
    const auto first = routing.token_S.begin() + begin;
    return {first, first + rows};
  }
  std::span<const float> weights() const {
    return std::span(routing.weight_S)
      .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(rows));
  }
};
/// Gathers rows of x [T, W] of the slots into out [rows, W].
void moe_gather(Backend& backend, const RoutedSlots& slots, std::int64_t width,
                ConstTypedPtr x, TypedPtr out);

enum class SlotWeights : std::uint8_t { applied, ignored };
/// Adds each slot's row to out[token].
void moe_scatter(Backend& backend, const RoutedSlots& slots, std::int64_t width,
                 SlotWeights weights, ConstTypedPtr from, TypedPtr out);

/// Returns the choice as kernels take it.
inline ExpertChoice choice_of(const RouterShape& shape) {
  return {shape.tokens, shape.experts, shape.chosen, shape.rule,
          shape.needs_scores()};
}

/// Chooses experts by logits [T, E] of the device: there, unless they are
/// replayed, if it has a kernel for it; else on the host.
Routing route(Backend& backend, const RouterShape& shape, const float* logits,
              const at::Tensor& correction_E);

/// Chooses the experts of each token, and brings their inputs to them. Memory
/// of what the result keeps is taken from `workspace`.
void moe_choose(const MoeShape& shape, const MoeWeights& weights,
                ConstTypedPtr x_TH, RoutedTokens& routed, Workspace& workspace);

/// Adds the sum over a token's experts, those of this tp rank, of weight *
/// expert(x) to out[T, H].
void moe_forward(const MoeShape& shape, const MoeWeights& weights,
                 ConstTypedPtr x_TH, const RoutedTokens& routed,
                 TypedPtr out_TH, Workspace& workspace);

/// Adds to `grads` and to dx[T, H], given the gradient of the sum; consumes
/// `routed.gate_up_RX`. `add_router_loss(d_logits_TE)`, if any, adds the
/// gradient of a loss of the router's own.
void moe_backward(const MoeShape& shape, const MoeWeights& weights,
                  ConstTypedPtr x_TH, const RoutedTokens& routed,
                  ConstTypedPtr dy_TH, const MoeWeights& grads, TypedPtr dx_TH,
                  Workspace& workspace,
                  const std::function<void(float*)>& add_router_loss = {});

} // namespace troupe::models
