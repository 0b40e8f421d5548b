// The products of a group of neighbouring experts over the rows of their tokens
// (moe.hpp), and their gradients: each is one grouped product, or two where an
// expert's gate and up are no neighbours in memory.
//
// n rows in order of expert, H hidden, I intermediate of an expert.
#pragma once

#include "models/kernels/backend.hpp"
#include "models/transformer/moe.hpp"

#include <vector>

namespace troupe::models {

class ExpertProducts {
public:
  /// Keeps references; `experts` are those of the device.
  ExpertProducts(const MoeShape& shape,
                 const std::vector<ExpertWeights>& experts,
                 const ExpertGroup& group)
    : shape_(shape),
      experts_(experts),
      group_(group) {}

  const MoeShape& shape() const {
    return shape_;
  }
  /// Returns the shape of the experts' activations.
  MlpShape unit() const;

  /// Computes gate and up [n, 2I] of x [n, H].
  void gate_up(ConstTypedPtr x, TypedPtr out) const;
  /// Computes outputs [n, H] of activations [n, I].
  void down(ConstTypedPtr act, TypedPtr out) const;
  /// Computes the gradient of activations from that of outputs.
  void grad_act(ConstTypedPtr dy, TypedPtr d_act) const;
  /// Computes dx [n, H] from the gradient of gate and up.
  void grad_x(ConstTypedPtr d_gate_up, TypedPtr dx) const;
  void add_down_grads(ConstTypedPtr dy, ConstTypedPtr act,
                      const std::vector<ExpertWeights>& grads) const;
  void add_gate_up_grads(ConstTypedPtr d_gate_up, ConstTypedPtr x,
                         const std::vector<ExpertWeights>& grads) const;

private:
  using Matrix = at::Tensor ExpertWeights::*;

  GroupedShape of(std::int64_t out, std::int64_t in) const {
    return {.begin_G = group_.begin_G,
            .out = out,
            .in = in,
            .operands = shape_.operands};
  }
  GroupedShape gate_and_up() const {
    GroupedShape both = of(2 * shape_.unit.width, shape_.hidden);
    both.parts = 2;
    return both;
  }
  /// Returns whether gate and up of all of the group are neighbours.
  bool have_gate_up(const std::vector<ExpertWeights>& experts) const;
  std::vector<ConstTypedPtr> weights(Matrix which) const;
  std::vector<float*> grads_of(const std::vector<ExpertWeights>& grads,
                               Matrix which) const;

  const MoeShape& shape_;
  const std::vector<ExpertWeights>& experts_;
  const ExpertGroup& group_;
};

} // namespace troupe::models
