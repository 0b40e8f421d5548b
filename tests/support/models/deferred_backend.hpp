// A device with deferred kernels: they run only when the host waits, in the
// order of the calls, with what their pointers hold by then. A host that reads
// without waiting, or writes where a kernel has yet to read, gets wrong results
// here, as it sometimes would on a GPU. The arithmetic is another backend's.
#pragma once

#include "models/kernels/backend.hpp"
#include "models/kernels/workspace.hpp"

#include "deferred_queue.hpp"

#include <atomic>

namespace troupe::testing {

class DeferredBackend final : public models::Backend, public DeferredQueue {
public:
  /// Returns the one of this process: its memory waits for it before it is
  /// freed.
  static DeferredBackend& instance();

  const net::BlockMemory* memory() const override;
  void wait() override;
  bool is_asynchronous() const override {
    return true;
  }
  std::unique_ptr<models::PendingRead> read_later(const float* from,
                                                  std::int64_t count) override;
  void write(const void* from, void* to, std::size_t size_bytes) override;
  std::unique_ptr<models::GraphRecorder> recorder() override;

  void fill(models::TypedPtr x, std::int64_t count, float value) override;
  void copy(models::ConstTypedPtr from, models::TypedPtr to,
            std::int64_t count) override;
  void copy_box(const models::BoxCopy& box, models::ConstTypedPtr from,
                models::TypedPtr to) override;
  void add(models::ConstTypedPtr a, models::ConstTypedPtr b,
           models::TypedPtr to, std::int64_t count) override;
  void scale(models::TypedPtr x, std::int64_t count, float factor) override;
  void gather_rows(const models::RowList& list, models::ConstTypedPtr from,
                   models::TypedPtr to) override;
  void add_rows(const models::RowList& list, models::ConstTypedPtr from,
                models::TypedPtr to) override;
  void scatter_rows(const models::RowList& list, models::ConstTypedPtr from,
                    models::TypedPtr to) override;
  void row_dots(const models::WholeRows& shape, models::ConstTypedPtr a,
                models::ConstTypedPtr b, float* dots_R) override;
  void scale_rows(std::span<const float> weights_R, std::int64_t width,
                  models::TypedPtr x) override;
  void add_column_sums(models::ConstTypedPtr x_TN, std::int64_t rows,
                       std::int64_t width, std::int64_t stride, float* sum_N,
                       models::Workspace& workspace) override;
  void embed(const models::Embedding& from,
             std::span<const models::DecodeToken> tokens,
             models::TypedPtr to) override;

  void gemm(const models::GemmShape& shape, const models::ConstTypedMatrix& a,
            const models::ConstTypedMatrix& b, const models::TypedMatrix& c,
            const models::GemmOptions& options) override;
  std::unique_ptr<models::PreparedWeight>
  prepare(std::span<const at::Tensor> parts, DType operands,
          std::unique_ptr<models::PreparedWeight> old) override;
  void product(std::int64_t rows, models::ConstTypedPtr x,
               const models::PreparedWeight& weight,
               const models::TypedMatrix& y,
               const models::GemmOptions& options) override;

  void norm(const models::NormShape& shape, models::ConstTypedPtr x_TH,
            const models::NormWeights& weights, models::TypedPtr y_TH,
            float* rstd_T) override;
  void norm_backward(const models::NormShape& shape,
                     models::ConstTypedPtr dy_TH, models::ConstTypedPtr x_TH,
                     const models::NormWeights& weights, const float* rstd_T,
                     models::TypedPtr dx_TH, const models::NormGrads& grads,
                     models::Workspace& workspace) override;
  void qk_norm(const models::QkNormShape& shape, const float* weight_D,
               models::TypedPtr x, models::TypedPtr raw_TX) override;
  void qk_norm_backward(const models::QkNormShape& shape, const float* weight_D,
                        models::ConstTypedPtr raw_TX, models::TypedPtr dx,
                        float* d_weight_D,
                        models::Workspace& workspace) override;
  void head_sums(const models::QkNormShape& shape,
                 const models::TypedRowPair& rows, const float* weight,
                 float* sums_T) override;

  void rope(const models::RopeShape& shape, const models::RopeTable& table,
            std::span<const std::int32_t> positions_T, models::TypedPtr x,
            bool backwards) override;
  void attention(const models::AttentionShape& shape,
                 models::ConstTypedPtr qkv_TX, models::TypedPtr context_TX,
                 float* lse_AT) override;
  void attention_backward(const models::AttentionShape& shape,
                          models::ConstTypedPtr qkv_TX,
                          models::ConstTypedPtr context_TX, const float* lse_AT,
                          models::ConstTypedPtr d_context_TX,
                          models::TypedPtr d_qkv_TX) override;
  void piece_attention(const models::PieceShape& shape,
                       const models::PieceRows& rows,
                       models::TypedPtr context_TX, float* lse_AT) override;
  void piece_attention_backward(const models::PieceShape& shape,
                                const models::PieceRows& rows,
                                const models::PieceContext& found,
                                models::ConstTypedPtr d_context_TX,
                                const models::PieceGrads& to) override;
  void decode_attention(const models::DecodeAttention& what,
                        const models::DecodeTokens& tokens,
                        models::KvCache& cache, models::TypedPtr qkv_RX,
                        models::TypedPtr context_RX) override;

  void mlp_unit(const models::MlpShape& shape, models::ConstTypedPtr in,
                models::TypedPtr act) override;
  void mlp_unit_backward(const models::MlpShape& shape, models::TypedPtr in,
                         models::TypedPtr d_act) override;
  bool dispatches(const models::ExpertChoice& choice,
                  const models::RoutedExperts& experts) const override;
  void dispatch(const float* logits_TE, const float* correction_E,
                const models::DeviceRouting& to) override;
  void experts_forward(const models::RoutedExperts& experts,
                       const models::DeviceRouting& routing,
                       models::ConstTypedPtr x_TH, models::TypedPtr gate_up_SX,
                       models::TypedPtr out_TH) override;
  void experts_backward(const models::RoutedExperts& experts,
                        const models::DeviceRouting& routing,
                        models::ConstTypedPtr x_TH, models::TypedPtr gate_up_SX,
                        models::ConstTypedPtr dy_TH,
                        const models::RoutedGrads& grads, float* d_weight_S,
                        models::TypedPtr dx_TH) override;
  void dispatch_backward(const models::DeviceRouting& routing,
                         const float* d_weight_S, float* d_logits_TE) override;
  void add_load_excess(const models::DeviceRouting& routing,
                       std::span<const std::int64_t> copies_T,
                       float* out_E) override;

  void cap_logits(float* x, std::int64_t count, float cap) override;
  void keep_logits(const models::KeptIds& kept, float* logits_RV) override;
  void logit_parts(const models::LogitRows& shape, const float* logits_RV,
                   models::RowPart* parts_R) override;
  void join_parts(const models::LogitRows& shape, std::uint32_t peers,
                  const models::RowPart* parts_PR,
                  const models::RowStatistics& found) override;
  void logit_gradient(const models::LogitRows& shape,
                      const models::RowGradients& gradients,
                      float* logits_RV) override;
  void picked_logits(const models::PickedIds& picked, const float* logits_RV,
                     float* to_RK) override;
  void join_picked(const models::PickedIds& picked, std::uint32_t peers,
                   const float* logits_PRK, const float* lse_R,
                   const models::PickedStatistics& found) override;
  void picked_gradient(const models::PickedIds& picked, const float* logits_RK,
                       const float* d_logprobs_RK, float* d_logits_RV) override;
  void largest_logits(const models::LargestLogits& shape,
                      const float* logits_RV, float* values_RK,
                      std::int32_t* ids_RK) override;
  bool draws() const override {
    return true;
  }
  void draw(const models::DrawRows& what, const float* logits_RV,
            const models::DrawKey* keys_R,
            models::DrawnToken* drawn_R) override;
  void scalar_rows(const float* weight_H, std::int64_t width,
                   models::ConstTypedPtr hidden_TH, std::int64_t rows,
                   float* out_T) override;
  void scalar_rows_backward(const float* weight_H, std::int64_t width,
                            models::ConstTypedPtr hidden_TH, std::int64_t rows,
                            const float* d_out_T, models::TypedPtr d_hidden_TH,
                            float* d_weight_H) override;

  double sum_of_squares(const float* grad,
                        std::span<const models::OptimizerRun> runs) override;
  void adamw(const models::AdamNumbers& numbers,
             const models::AdamPlanes& planes,
             std::span<const models::OptimizerRun> runs) override;

  /// Returns the number of all draws so far, one per pass.
  int drawn() const {
    return drawn_;
  }

private:
  explicit DeferredBackend(models::Backend& inner) : inner_(inner) {}

  models::Backend& inner_;
  models::Workspace scratch_; ///< scratch memory of kernels when they run
  std::atomic<int> drawn_ = 0;
};

} // namespace troupe::testing
