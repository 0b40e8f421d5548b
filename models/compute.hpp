// The arithmetic of one device over raw pointers to its memory: what the stack,
// its gradient, losses, the optimizer and generation are written on. One
// implementation is our own kernels for the host (host_compute.hpp), the other
// is made of ATen operations on any device of libtorch (aten_compute.hpp).
//
// Kernels run in the order of the calls and may return before they are done.
// What stands in a device's memory is the host's to read after `wait`, and goes
// there through `write`. Spans, tables of the host and shapes are read during
// the call. What each kernel computes is said where the host's is declared.
// Tensors of weights are views of the device's memory, whatever libtorch
// believes of them: kernels take the pointers.
#pragma once

#include "models/adamw.hpp"
#include "models/attention.hpp"
#include "models/blocks.hpp"
#include "models/decode_attention.hpp"
#include "models/gemm.hpp"
#include "models/head_norm.hpp"
#include "models/logits.hpp"
#include "models/mlp.hpp"
#include "models/norm.hpp"
#include "models/recording.hpp"
#include "models/rope.hpp"
#include "net/block_memory.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace troupe::models {

/// A weight [out, in] as small products of generation read it fastest.
class PreparedWeight {
public:
  virtual ~PreparedWeight() = default;
  virtual std::int64_t in() const = 0;
  virtual std::int64_t out() const = 0;
};

class Compute {
public:
  virtual ~Compute() = default;

  /// Where its numbers are allocated; null: the system's memory.
  virtual const net::BlockMemory* memory() const = 0;
  /// Returns when all kernels so far are done. From any thread.
  virtual void wait() = 0;
  virtual void write(const void* from, void* to, std::size_t size_bytes) = 0;
  /// Null: a kernel costs no more than its work, nothing is recorded.
  virtual std::unique_ptr<Recorder> recorder() {
    return nullptr;
  }

  virtual void fill(float* x, std::int64_t count, float value) = 0;
  virtual void copy(const float* from, float* to, std::int64_t count) = 0;
  virtual void copy_box(const BoxCopy& box, const float* from, float* to) = 0;
  virtual void add(const float* a, const float* b, float* to,
                   std::int64_t count)
    = 0;
  virtual void gather_rows(const RowList& list, const float* from, float* to)
    = 0;
  virtual void add_rows(const RowList& list, const float* from, float* to) = 0;
  virtual void scatter_rows(const RowList& list, const float* from, float* to)
    = 0;

  virtual void gemm(const GemmShape& shape, const ConstMatrix& a,
                    const ConstMatrix& b, const MutableMatrix& c,
                    const GemmOptions& options)
    = 0;
  /// Weights one below the other, as one.
  virtual std::unique_ptr<PreparedWeight>
  prepare(std::span<const at::Tensor> parts, DType operands) = 0;
  /// y [rows, out] (+)= x [rows, in] weight^T + bias; lines of `y.stride`.
  virtual void product(std::int64_t rows, const float* x,
                       const PreparedWeight& weight, const MutableMatrix& y,
                       const GemmOptions& options)
    = 0;

  virtual void norm(const NormShape& shape, const float* x_TH,
                    const NormWeights& weights, float* y_TH, float* rstd_T)
    = 0;
  virtual void norm_backward(const NormShape& shape, const float* dy_TH,
                             const float* x_TH, const NormWeights& weights,
                             const float* rstd_T, float* dx_TH,
                             const NormGrads& grads, Workspace& workspace)
    = 0;
  virtual void add_column_sums(const float* x_TN, std::int64_t rows,
                               std::int64_t width, std::int64_t stride,
                               float* sum_N, Workspace& workspace)
    = 0;
  virtual void head_norm(const HeadNormShape& shape, const float* weight_D,
                         float* x, float* raw_TX)
    = 0;
  virtual void head_norm_backward(const HeadNormShape& shape,
                                  const float* weight_D, const float* raw_TX,
                                  float* dx, float* d_weight_D,
                                  Workspace& workspace)
    = 0;
  virtual void rope(const RopeShape& shape, const RopeTable& table,
                    std::span<const std::int32_t> positions_T, float* x,
                    bool backwards)
    = 0;
  virtual void attention(const AttentionShape& shape, const float* qkv_TX,
                         float* context_TX, float* lse_AT)
    = 0;
  virtual void attention_backward(const AttentionShape& shape,
                                  const float* qkv_TX, const float* context_TX,
                                  const float* lse_AT,
                                  const float* d_context_TX, float* d_qkv_TX)
    = 0;
  virtual void decode_attention(const DecodeAttention& what,
                                const DecodeRows& rows, KvCache& cache,
                                float* qkv_RX, float* context_RX)
    = 0;
  virtual void mlp_unit(const MlpShape& shape, const float* in, float* act) = 0;
  virtual void mlp_unit_backward(const MlpShape& shape, float* in, float* d_act)
    = 0;

  virtual void cap_logits(float* x, std::int64_t count, float cap) = 0;
  virtual void logit_parts(const LogitRows& shape, const float* logits_RV,
                           RowPart* parts_R)
    = 0;
  virtual void join_parts(const LogitRows& shape, std::uint32_t peers,
                          const RowPart* parts_PR, const RowStatistics& found)
    = 0;
  virtual void logit_gradient(const LogitRows& shape,
                              const RowGradients& gradients, float* logits_RV)
    = 0;
  virtual void scalar_rows(const float* weight_H, std::int64_t width,
                           const float* hidden_TH, std::int64_t rows,
                           float* out_T)
    = 0;
  virtual void scalar_rows_backward(const float* weight_H, std::int64_t width,
                                    const float* hidden_TH, std::int64_t rows,
                                    const float* d_out_T, float* d_hidden_TH,
                                    float* d_weight_H)
    = 0;

  /// Waits for it.
  virtual double sum_of_squares(const float* grad,
                                std::span<const OptimizerRun> runs)
    = 0;
  virtual void adamw(const AdamNumbers& numbers, const AdamPlanes& planes,
                     std::span<const OptimizerRun> runs)
    = 0;
};

} // namespace troupe::models
