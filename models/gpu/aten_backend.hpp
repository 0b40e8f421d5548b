// A Backend made of ATen operations on one libtorch device: the arithmetic of
// GPUs, and on the CPU a check of it against our own kernels. Kernels compute
// and sum in fp32 and round what they store once. Attention over packed
// sequences uses the fused kernel where it supports the shape. Kernels view
// pointers of the given memory as tensors of the device and run on the default
// stream of the calling thread, so that threads share one order.
#pragma once

#include "models/gpu/aten_views.hpp"
#include "models/kernels/backend.hpp"

#include <ATen/core/Tensor.h>

namespace troupe::models {

class AtenBackend final : public Backend, private AtenViews {
public:
  explicit AtenBackend(at::Device device, const AtenOptions& options = {})
    : AtenViews(device, options) {}

  const net::BlockMemory* memory() const override {
    return options_.memory;
  }
  void enter() override;
  void wait() override;
  void write(const void* from, void* to, std::size_t size_bytes) override;
  DType storage(DType operands) const override {
    return operands == DType::bf16 ? options_.bf16_storage : DType::f32;
  }
  /// Also on the CPU, so that it gets the calls of a GPU in their order.
  bool is_asynchronous() const override {
    return true;
  }
  std::unique_ptr<PendingRead> read_later(const float* from,
                                          std::int64_t count) override;
  std::unique_ptr<GraphRecorder> recorder() override;

  void fill(TypedPtr x, std::int64_t count, float value) override;
  void copy(ConstTypedPtr from, TypedPtr to, std::int64_t count) override;
  void copy_box(const BoxCopy& box, ConstTypedPtr from, TypedPtr to) override;
  void add(ConstTypedPtr a, ConstTypedPtr b, TypedPtr to,
           std::int64_t count) override;
  void scale(TypedPtr x, std::int64_t count, float factor) override;
  void gather_rows(const RowList& list, ConstTypedPtr from,
                   TypedPtr to) override;
  void add_rows(const RowList& list, ConstTypedPtr from, TypedPtr to) override;
  void scatter_rows(const RowList& list, ConstTypedPtr from,
                    TypedPtr to) override;
  void row_dots(const WholeRows& shape, ConstTypedPtr a, ConstTypedPtr b,
                float* dots_R) override;
  void scale_rows(std::span<const float> weights_R, std::int64_t width,
                  TypedPtr x) override;
  void add_column_sums(ConstTypedPtr x_TN, std::int64_t rows,
                       std::int64_t width, std::int64_t stride, float* sum_N,
                       Workspace& workspace) override;
  void embed(const Embedding& from, std::span<const DecodeToken> tokens,
             TypedPtr to) override;

  void gemm(const GemmShape& shape, const ConstTypedMatrix& a,
            const ConstTypedMatrix& b, const TypedMatrix& c,
            const GemmOptions& options) override;
  std::unique_ptr<PreparedWeight>
  prepare(std::span<const at::Tensor> parts, DType operands,
          std::unique_ptr<PreparedWeight> old) override;
  void product(std::int64_t rows, ConstTypedPtr x, const PreparedWeight& weight,
               const TypedMatrix& y, const GemmOptions& options) override;
  void grouped_product(const GroupedShape& shape, const ConstTypedMatrix& x,
                       GroupedWeights weights, const TypedMatrix& y) override;
  void grouped_grad_x(const GroupedShape& shape, const ConstTypedMatrix& dy,
                      GroupedWeights weights, const TypedMatrix& dx) override;
  void grouped_grad_w(const GroupedShape& shape, const ConstTypedMatrix& dy,
                      const ConstTypedMatrix& x, GroupedGrads grads) override;
  std::int64_t grouped_rows_at_once() const override;

  void norm(const NormShape& shape, ConstTypedPtr x_TH,
            const NormWeights& weights, TypedPtr y_TH, float* rstd_T) override;
  void norm_backward(const NormShape& shape, ConstTypedPtr dy_TH,
                     ConstTypedPtr x_TH, const NormWeights& weights,
                     const float* rstd_T, TypedPtr dx_TH,
                     const NormGrads& grads, Workspace& workspace) override;
  void qk_norm(const QkNormShape& shape, const float* weight_D, TypedPtr x,
               TypedPtr raw_TX) override;
  void qk_norm_backward(const QkNormShape& shape, const float* weight_D,
                        ConstTypedPtr raw_TX, TypedPtr dx, float* d_weight_D,
                        Workspace& workspace) override;
  void head_sums(const QkNormShape& shape, const TypedRowPair& rows,
                 const float* weight, float* sums_T) override;

  void rope(const RopeShape& shape, const RopeTable& table,
            std::span<const std::int32_t> positions_T, TypedPtr x,
            bool backwards) override;
  void attention(const AttentionShape& shape, ConstTypedPtr qkv_TX,
                 TypedPtr context_TX, float* lse_AT) override;
  void attention_backward(const AttentionShape& shape, ConstTypedPtr qkv_TX,
                          ConstTypedPtr context_TX, const float* lse_AT,
                          ConstTypedPtr d_context_TX,
                          TypedPtr d_qkv_TX) override;
  void piece_attention(const PieceShape& shape, const PieceRows& rows,
                       TypedPtr context_TX, float* lse_AT) override;
  void piece_attention_backward(const PieceShape& shape, const PieceRows& rows,
                                const PieceContext& found,
                                ConstTypedPtr d_context_TX,
                                const PieceGrads& to) override;
  void decode_attention(const DecodeAttention& what, const DecodeTokens& tokens,
                        KvCache& cache, TypedPtr qkv_RX,
                        TypedPtr context_RX) override;
  std::int64_t page_tokens() const override {
    return options_.page_tokens;
  }

  void mlp_unit(const MlpShape& shape, ConstTypedPtr in, TypedPtr act) override;
  void mlp_unit_backward(const MlpShape& shape, TypedPtr in,
                         TypedPtr d_act) override;
  std::optional<ChosenExperts>
  choose_experts(const ExpertChoice& shape, const float* logits_TE,
                 const float* correction_E) override;
  bool choice_backward(const ExpertChoice& shape, const RoutedChoice& routed,
                       const float* d_weight_S, float* d_logits_TE) override;

  bool dispatches(const ExpertChoice& choice,
                  const RoutedExperts& experts) const override;
  void dispatch(const float* logits_TE, const float* correction_E,
                const DeviceRouting& to) override;
  void experts_forward(const RoutedExperts& experts,
                       const DeviceRouting& routing, ConstTypedPtr x_TH,
                       TypedPtr gate_up_SX, TypedPtr out_TH) override;
  void experts_backward(const RoutedExperts& experts,
                        const DeviceRouting& routing, ConstTypedPtr x_TH,
                        TypedPtr gate_up_SX, ConstTypedPtr dy_TH,
                        const RoutedGrads& grads, float* d_weight_S,
                        TypedPtr dx_TH) override;
  void dispatch_backward(const DeviceRouting& routing, const float* d_weight_S,
                         float* d_logits_TE) override;
  void add_load_excess(const DeviceRouting& routing,
                       std::span<const std::int64_t> copies_T,
                       float* out_E) override;

  std::int64_t logits_at_once() const override;
  void cap_logits(float* x, std::int64_t count, float cap) override;
  void keep_logits(const KeptIds& kept, float* logits_RV) override;
  void logit_parts(const LogitRows& shape, const float* logits_RV,
                   RowPart* parts_R) override;
  void join_parts(const LogitRows& shape, std::uint32_t peers,
                  const RowPart* parts_PR, const RowStatistics& found) override;
  void logit_gradient(const LogitRows& shape, const RowGradients& gradients,
                      float* logits_RV) override;
  void picked_logits(const PickedIds& picked, const float* logits_RV,
                     float* to_RK) override;
  void join_picked(const PickedIds& picked, std::uint32_t peers,
                   const float* logits_PRK, const float* lse_R,
                   const PickedStatistics& found) override;
  void picked_gradient(const PickedIds& picked, const float* logits_RK,
                       const float* d_logprobs_RK, float* d_logits_RV) override;
  void largest_logits(const LargestLogits& shape, const float* logits_RV,
                      float* values_RK, std::int32_t* ids_RK) override;
  bool draws() const override;
  void draw(const DrawRows& what, const float* logits_RV, const DrawKey* keys_R,
            DrawnToken* drawn_R) override;
  void scalar_rows(const float* weight_H, std::int64_t width,
                   ConstTypedPtr hidden_TH, std::int64_t rows,
                   float* out_T) override;
  void scalar_rows_backward(const float* weight_H, std::int64_t width,
                            ConstTypedPtr hidden_TH, std::int64_t rows,
                            const float* d_out_T, TypedPtr d_hidden_TH,
                            float* d_weight_H) override;

  double sum_of_squares(const float* grad,
                        std::span<const OptimizerRun> runs) override;
  void adamw(const AdamNumbers& numbers, const AdamPlanes& planes,
             std::span<const OptimizerRun> runs) override;

private:
  /// Attends with one sequence after the other, where no fused kernel takes
  /// them.
  void plain_attention(const AttentionShape& shape, ConstTypedPtr qkv_TX,
                       TypedPtr context_TX, float* lse_AT) const;
  void plain_attention_backward(const AttentionShape& shape,
                                ConstTypedPtr qkv_TX, ConstTypedPtr context_TX,
                                const float* lse_AT, ConstTypedPtr d_context_TX,
                                TypedPtr d_qkv_TX) const;
};

} // namespace troupe::models
