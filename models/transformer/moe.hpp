// A mixture of experts instead of one MLP (Mixtral, Qwen3-MoE, GLM-4.5): the
// router (router.hpp) chooses k experts per token and their weights. Tokens are
// sorted by expert, so that an expert is three products over its tokens. Each
// tp rank has a part of each expert's width and all of the router; its result
// is a partial sum. All of it runs on the host, in memory that the device has
// finished with.
//
// T packed tokens, H hidden, E experts, k experts per token, S = T * k slots (a
// token at an expert) in order of expert, I intermediate of an expert.
#pragma once

#include "models/kernels/mlp.hpp"
#include "models/kernels/workspace.hpp"
#include "models/transformer/router.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace troupe::models {

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
  std::vector<ExpertWeights> experts;
  std::int64_t ordinal = 0; ///< among the model's layers with experts

  const float* correction_E() const { ///< null: none
    return correction.defined() ? correction.const_data_ptr<float>() : nullptr;
  }
};

struct MoeShape {
  std::int64_t hidden = 0;     ///< H
  RouterShape router;          ///< T, E, k
  MlpShape unit;               ///< one expert; its `rows` are ignored
  DType operands = DType::f32; ///< of the experts' products, not the router's
};

/// Gathers rows of x [T, W] of the slots [begin, begin + rows) into out [rows,
/// W].
void moe_gather(const Routing& routing, std::int64_t begin, std::int64_t rows,
                std::int64_t width, const float* x, float* out);
/// Adds each slot's row, times its weight if `weighted`, to out[token].
void moe_scatter(const Routing& routing, std::int64_t begin, std::int64_t rows,
                 std::int64_t width, bool weighted, const float* from,
                 float* out);

/// Adds the sum over a token's experts of weight * expert(x) to out[T, H].
/// `gate_up_SX` [S, 2I] keeps what backward needs.
void moe_forward(const MoeShape& shape, const MoeWeights& weights,
                 const float* x_TH, Routing& routing, float* gate_up_SX,
                 float* out_TH, Workspace& workspace);

/// Adds to `grads` and to dx[T, H], given the gradient of the sum; consumes
/// `gate_up_SX`.
void moe_backward(const MoeShape& shape, const MoeWeights& weights,
                  const float* x_TH, const Routing& routing, float* gate_up_SX,
                  const float* dy_TH, const MoeWeights& grads, float* dx_TH,
                  Workspace& workspace);

} // namespace troupe::models
