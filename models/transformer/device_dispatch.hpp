// Layers whose tokens a device dispatches to experts by itself (moe.hpp,
// models/kernels/routed_experts.hpp), so that the host neither waits for the
// choice of a layer nor knows it. What the host needs, for metrics and the
// balance loss, it reads once, of all layers together.
#pragma once

#include "models/transformer/moe.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::models {

/// The addresses of a layer's experts in memory.
struct ExpertPlaces {
  std::vector<ConstTypedPtr> gate_up;
  std::vector<ConstTypedPtr> down;

  explicit ExpertPlaces(const std::vector<ExpertWeights>& experts);
};

/// Returns the experts as kernels take them; keeps references.
RoutedExperts experts_at(const MoeShape& shape, const ExpertPlaces& places);

/// Returns whether the device dispatches tokens to the experts of a layer: all
/// are here, the router chooses, and its kernels take these weights.
bool dispatches(const MoeShape& shape, const MoeWeights& weights);

/// Chooses the experts of each token by logits [T, E] and sorts tokens by them.
void dispatch(const MoeShape& shape, const at::Tensor& correction_E,
              const float* logits_TE, RoutedTokens& routed);

/// As `moe_forward` and `moe_backward`, for tokens that are dispatched.
void forward_on_device(const MoeShape& shape, const MoeWeights& weights,
                       ConstTypedPtr x_TH, const RoutedTokens& routed,
                       TypedPtr out_TH);
/// Leaves the router's gradient to the caller, given that of slots' weights.
void backward_on_device(const MoeShape& shape, const MoeWeights& weights,
                        ConstTypedPtr x_TH, const RoutedTokens& routed,
                        ConstTypedPtr dy_TH, const MoeWeights& grads,
                        float* d_weight_S, TypedPtr dx_TH);

/// Adds the load excess of each expert (router.hpp) to out_E of the device.
void moe_add_load_excess(const MoeShape& shape, const RoutedTokens& routed,
                         std::span<const std::int64_t> copies_T, float* out_E);

/// Waits, and reads the choices of layers whose host does not know them: the
/// experts of each token, and all of a routing with scores.
void read_choices(Backend& backend, std::span<RoutedTokens* const> layers);

} // namespace troupe::models
