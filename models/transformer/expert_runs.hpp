// Experts of a device over the rows of their tokens, which the host dealt to
// them (router.hpp): group by group of neighbouring experts, gathered, through
// their products, and added to the rows of their tokens.
//
// S slots, H hidden, I intermediate of an expert.
#pragma once

#include "models/transformer/moe.hpp"

#include <vector>

namespace troupe::models {

/// The experts of this device and the rows that go to them.
struct ExpertInputs {
  const std::vector<ExpertWeights>& experts;
  const Routing& routing;
  std::int64_t first = 0; ///< index of the first expert in the routing
  ConstTypedPtr x;
  TypedPtr gate_up;

  std::vector<ExpertGroup> groups(const Backend& backend) const;
};

/// Adds weight * expert(x) of each slot to out[token].
void run_experts(const MoeShape& shape, const ExpertInputs& in, TypedPtr out,
                 Workspace& workspace);

/// Adds to the experts' gradients and to dx, and sets d_weight_S of these
/// experts' slots.
void run_experts_backward(const MoeShape& shape, const ExpertInputs& in,
                          const std::vector<ExpertWeights>& grads,
                          ConstTypedPtr dy, float* d_weight_S, TypedPtr dx,
                          Workspace& workspace);

} // namespace troupe::models
