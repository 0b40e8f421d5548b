// The arithmetic of one device over raw pointers to its memory, on which the
// stack, its gradient, losses, the optimizer and generation are written: by our
// own host kernels (host_backend.hpp) or ATen on any device (aten_backend.hpp).
//
// Weights of products, activations and cached keys and values are fp32 or bf16
// (typed_ptr.hpp); kernels compute and sum in fp32 and round what they store.
// Statistics, logits, parameters of norms, gradients of weights and optimizer
// states are fp32.
//
// Kernels run in call order and may return before they are done. Spans, host
// tables and shapes are read during the call. Kernels are documented at their
// host versions. Weight tensors are views of device memory.
#pragma once

#include "config/base/defaults.hpp"
#include "models/kernels/adamw.hpp"
#include "models/kernels/attention.hpp"
#include "models/kernels/decode_attention.hpp"
#include "models/kernels/elementwise.hpp"
#include "models/kernels/embed.hpp"
#include "models/kernels/graph_capture.hpp"
#include "models/kernels/kept_logits.hpp"
#include "models/kernels/logits.hpp"
#include "models/kernels/mlp.hpp"
#include "models/kernels/norm.hpp"
#include "models/kernels/picked_logits.hpp"
#include "models/kernels/piece_kernels.hpp"
#include "models/kernels/prepared_weight.hpp"
#include "models/kernels/qk_norm.hpp"
#include "models/kernels/rope.hpp"
#include "models/kernels/token_draw.hpp"
#include "models/kernels/typed_ptr.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

namespace troupe::models {

class Backend : public PieceKernels {
public:
  /// Returns the type that activations, weights of products and cached keys and
  /// values are stored in where products take `operands`.
  virtual DType storage(DType /*operands*/) const {
    return DType::f32;
  }
  /// Returns the most tokens of a page of the KV cache; by default a page holds
  /// a whole sequence.
  virtual std::int64_t page_tokens() const {
    return std::numeric_limits<std::int64_t>::max();
  }
  /// Returns a recorder for graph capture, or null.
  virtual std::unique_ptr<GraphRecorder> recorder() {
    return nullptr;
  }

  virtual void fill(TypedPtr x, std::int64_t count, float value) = 0;
  virtual void copy(ConstTypedPtr from, TypedPtr to, std::int64_t count) = 0;
  virtual void copy_box(const BoxCopy& box, ConstTypedPtr from, TypedPtr to)
    = 0;
  virtual void add(ConstTypedPtr a, ConstTypedPtr b, TypedPtr to,
                   std::int64_t count)
    = 0;
  virtual void scale(TypedPtr x, std::int64_t count, float factor) = 0;
  virtual void gather_rows(const RowList& list, ConstTypedPtr from, TypedPtr to)
    = 0;
  virtual void add_rows(const RowList& list, ConstTypedPtr from, TypedPtr to)
    = 0;
  virtual void scatter_rows(const RowList& list, ConstTypedPtr from,
                            TypedPtr to)
    = 0;
  virtual void row_dots(const WholeRows& shape, ConstTypedPtr a,
                        ConstTypedPtr b, float* dots_R)
    = 0;
  virtual void scale_rows(std::span<const float> weights_R, std::int64_t width,
                          TypedPtr x)
    = 0;

  /// Prepares weights, stacked along their rows, as one: in place of `old` if
  /// that has their shape.
  virtual std::unique_ptr<PreparedWeight>
  prepare(std::span<const at::Tensor> parts, DType operands,
          std::unique_ptr<PreparedWeight> old = nullptr)
    = 0;
  /// Computes y [rows, out] (+)= x [rows, in] weight^T + bias; rows of y are
  /// `y.stride` apart.
  virtual void product(std::int64_t rows, ConstTypedPtr x,
                       const PreparedWeight& weight, const TypedMatrix& y,
                       const GemmOptions& options)
    = 0;

  virtual void norm(const NormShape& shape, ConstTypedPtr x_TH,
                    const NormWeights& weights, TypedPtr y_TH, float* rstd_T)
    = 0;
  virtual void norm_backward(const NormShape& shape, ConstTypedPtr dy_TH,
                             ConstTypedPtr x_TH, const NormWeights& weights,
                             const float* rstd_T, TypedPtr dx_TH,
                             const NormGrads& grads, Workspace& workspace)
    = 0;
  virtual void add_column_sums(ConstTypedPtr x_TN, std::int64_t rows,
                               std::int64_t width, std::int64_t stride,
                               float* sum_N, Workspace& workspace)
    = 0;
  virtual void qk_norm(const QkNormShape& shape, const float* weight_D,
                       TypedPtr x, TypedPtr raw_TX)
    = 0;
  virtual void qk_norm_backward(const QkNormShape& shape, const float* weight_D,
                                ConstTypedPtr raw_TX, TypedPtr dx,
                                float* d_weight_D, Workspace& workspace)
    = 0;
  virtual void head_sums(const QkNormShape& shape, const TypedRowPair& rows,
                         const float* weight, float* sums_T)
    = 0;
  virtual void rope(const RopeShape& shape, const RopeTable& table,
                    std::span<const std::int32_t> positions_T, TypedPtr x,
                    bool backwards)
    = 0;
  virtual void attention(const AttentionShape& shape, ConstTypedPtr qkv_TX,
                         TypedPtr context_TX, float* lse_AT)
    = 0;
  virtual void attention_backward(const AttentionShape& shape,
                                  ConstTypedPtr qkv_TX,
                                  ConstTypedPtr context_TX, const float* lse_AT,
                                  ConstTypedPtr d_context_TX, TypedPtr d_qkv_TX)
    = 0;
  virtual void embed(const Embedding& from, std::span<const DecodeToken> tokens,
                     TypedPtr to)
    = 0;
  virtual void decode_attention(const DecodeAttention& what,
                                const DecodeTokens& tokens, KvCache& cache,
                                TypedPtr qkv_RX, TypedPtr context_RX)
    = 0;
  virtual void mlp_unit(const MlpShape& shape, ConstTypedPtr in, TypedPtr act)
    = 0;
  virtual void mlp_unit_backward(const MlpShape& shape, TypedPtr in,
                                 TypedPtr d_act)
    = 0;

  /// Returns how many logits a loss computes at a time.
  virtual std::int64_t logits_at_once() const {
    return defaults::logits_at_once;
  }
  virtual void cap_logits(float* x, std::int64_t count, float cap) = 0;
  virtual void keep_logits(const KeptIds& kept, float* logits_RV) = 0;
  virtual void logit_parts(const LogitRows& shape, const float* logits_RV,
                           RowPart* parts_R)
    = 0;
  virtual void join_parts(const LogitRows& shape, std::uint32_t peers,
                          const RowPart* parts_PR, const RowStatistics& found)
    = 0;
  virtual void logit_gradient(const LogitRows& shape,
                              const RowGradients& gradients, float* logits_RV)
    = 0;
  virtual void picked_logits(const PickedIds& picked, const float* logits_RV,
                             float* to_RK)
    = 0;
  virtual void join_picked(const PickedIds& picked, std::uint32_t peers,
                           const float* logits_PRK, const float* lse_R,
                           const PickedStatistics& found)
    = 0;
  virtual void picked_gradient(const PickedIds& picked, const float* logits_RK,
                               const float* d_logprobs_RK, float* d_logits_RV)
    = 0;
  virtual void largest_logits(const LargestLogits& shape,
                              const float* logits_RV, float* values_RK,
                              std::int32_t* ids_RK)
    = 0;
  /// Returns whether the device draws tokens, or leaves that to the host.
  virtual bool draws() const {
    return false;
  }
  /// Draws a token per row; keys and tokens are in device memory.
  virtual void draw(const DrawRows& /*what*/, const float* /*logits_RV*/,
                    const DrawKey* /*keys_R*/, DrawnToken* /*drawn_R*/) {
    TROUPE_CHECK(draws(), "the host draws");
  }
  virtual void scalar_rows(const float* weight_H, std::int64_t width,
                           ConstTypedPtr hidden_TH, std::int64_t rows,
                           float* out_T)
    = 0;
  virtual void scalar_rows_backward(const float* weight_H, std::int64_t width,
                                    ConstTypedPtr hidden_TH, std::int64_t rows,
                                    const float* d_out_T, TypedPtr d_hidden_TH,
                                    float* d_weight_H)
    = 0;

  /// Waits for the result.
  virtual double sum_of_squares(const float* grad,
                                std::span<const OptimizerRun> runs)
    = 0;
  virtual void adamw(const AdamNumbers& numbers, const AdamPlanes& planes,
                     std::span<const OptimizerRun> runs)
    = 0;
};

} // namespace troupe::models
