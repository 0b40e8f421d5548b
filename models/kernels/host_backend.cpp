#include "models/kernels/host_backend.hpp"

#include "config/base/error.hpp"
#include "models/kernels/soft_cap.hpp"

#include <cstring>
#include <vector>

namespace troupe::models {

namespace {

class HostWeight final : public PreparedWeight {
public:
  explicit HostWeight(PackedMatrix matrix) : packed(std::move(matrix)) {}
  std::int64_t in() const override {
    return packed.k();
  }
  std::int64_t out() const override {
    return packed.n();
  }

  const PackedMatrix packed; // of the transposed weight
};

PackedMatrix pack_weight(const float* weight, std::int64_t out, std::int64_t in,
                         DType operands) {
  return {ConstMatrix{weight, in, 1}.transposed(), in, out, operands};
}

class HostBackend final : public Backend {
public:
  const net::BlockMemory* memory() const override {
    return nullptr;
  }
  void wait() override {}
  void write(const void* from, void* to, std::size_t size_bytes) override {
    if (size_bytes > 0) // an empty block may have no address
      std::memcpy(to, from, size_bytes);
  }

  void fill(float* x, std::int64_t count, float value) override {
    fill_floats(x, count, value);
  }
  void copy(const float* from, float* to, std::int64_t count) override {
    copy_floats(from, to, count);
  }
  void copy_box(const BoxCopy& box, const float* from, float* to) override {
    models::copy_box(box, from, to);
  }
  void add(const float* a, const float* b, float* to,
           std::int64_t count) override {
    add_floats(a, b, to, count);
  }
  void scale(float* x, std::int64_t count, float factor) override {
    scale_floats(x, count, factor);
  }
  void gather_rows(const RowList& list, const float* from, float* to) override {
    models::gather_rows(list, from, to);
  }
  void add_rows(const RowList& list, const float* from, float* to) override {
    models::add_rows(list, from, to);
  }
  void scatter_rows(const RowList& list, const float* from,
                    float* to) override {
    models::scatter_rows(list, from, to);
  }
  void row_dots(const WholeRows& shape, const float* a, const float* b,
                float* dots_R) override {
    models::row_dots(shape, a, b, dots_R);
  }
  void scale_rows(std::span<const float> weights_R, std::int64_t width,
                  float* x) override {
    models::scale_rows(weights_R, width, x);
  }

  void gemm(const GemmShape& shape, const ConstMatrix& a, const ConstMatrix& b,
            const MutableMatrix& c, const GemmOptions& options) override {
    GemmOptions fast = options;
    fast.parts = true;
    models::gemm(shape, a, b, c, fast);
  }
  std::unique_ptr<PreparedWeight> prepare(std::span<const at::Tensor> parts,
                                          DType operands) override {
    if (parts.size() == 1)
      return std::make_unique<HostWeight>(
        pack_weight(parts[0].const_data_ptr<float>(), parts[0].size(0),
                    parts[0].size(1), operands));
    std::vector<float> rows;
    std::int64_t out = 0;
    for (const at::Tensor& part : parts) {
      TROUPE_CHECK(part.is_contiguous() && part.scalar_type() == at::kFloat,
                   "weights are contiguous f32");
      const float* from = part.const_data_ptr<float>();
      rows.insert(rows.end(), from, from + part.numel());
      out += part.size(0);
    }
    return std::make_unique<HostWeight>(
      pack_weight(rows.data(), out, parts[0].size(1), operands));
  }
  void product(std::int64_t rows, const float* x, const PreparedWeight& weight,
               const MutableMatrix& y, const GemmOptions& options) override {
    models::gemm(rows, {x, weight.in()},
                 static_cast<const HostWeight&>(weight).packed, y, options);
  }

  void norm(const NormShape& shape, const float* x_TH,
            const NormWeights& weights, float* y_TH, float* rstd_T) override {
    models::norm(shape, x_TH, weights, y_TH, rstd_T);
  }
  void norm_backward(const NormShape& shape, const float* dy_TH,
                     const float* x_TH, const NormWeights& weights,
                     const float* rstd_T, float* dx_TH, const NormGrads& grads,
                     Workspace& workspace) override {
    models::norm_backward(shape, dy_TH, x_TH, weights, rstd_T, dx_TH, grads,
                          workspace);
  }
  void add_column_sums(const float* x_TN, std::int64_t rows, std::int64_t width,
                       std::int64_t stride, float* sum_N,
                       Workspace& workspace) override {
    models::add_column_sums(x_TN, rows, width, stride, sum_N, workspace);
  }
  void qk_norm(const QkNormShape& shape, const float* weight_D, float* x,
               float* raw_TX) override {
    models::qk_norm(shape, weight_D, x, raw_TX);
  }
  void qk_norm_backward(const QkNormShape& shape, const float* weight_D,
                        const float* raw_TX, float* dx, float* d_weight_D,
                        Workspace& workspace) override {
    models::qk_norm_backward(shape, weight_D, raw_TX, dx, d_weight_D,
                             workspace);
  }
  void head_sums(const QkNormShape& shape, const RowPair& rows,
                 const float* weight, float* sums_T) override {
    models::head_sums(shape, rows, weight, sums_T);
  }
  void rope(const RopeShape& shape, const RopeTable& table,
            std::span<const std::int32_t> positions_T, float* x,
            bool backwards) override {
    models::rope(shape, table, positions_T.data(), x, backwards);
  }
  void attention(const AttentionShape& shape, const float* qkv_TX,
                 float* context_TX, float* lse_AT) override {
    models::attention(shape, qkv_TX, context_TX, lse_AT);
  }
  void attention_backward(const AttentionShape& shape, const float* qkv_TX,
                          const float* context_TX, const float* lse_AT,
                          const float* d_context_TX, float* d_qkv_TX) override {
    models::attention_backward(shape, qkv_TX, context_TX, lse_AT, d_context_TX,
                               d_qkv_TX);
  }
  void decode_attention(const DecodeAttention& what, const DecodeTokens& tokens,
                        KvCache& cache, float* qkv_RX,
                        float* context_RX) override {
    models::decode_attention(what, tokens, cache, qkv_RX, context_RX);
  }
  void mlp_unit(const MlpShape& shape, const float* in, float* act) override {
    models::mlp_unit(shape, in, act);
  }
  void mlp_unit_backward(const MlpShape& shape, float* in,
                         float* d_act) override {
    models::mlp_unit_backward(shape, in, d_act);
  }

  void cap_logits(float* x, std::int64_t count, float cap) override {
    models::cap_logits(x, count, cap);
  }
  void keep_logits(const KeptIds& kept, float* logits_RV) override {
    models::keep_logits(kept, logits_RV);
  }
  void logit_parts(const LogitRows& shape, const float* logits_RV,
                   RowPart* parts_R) override {
    models::logit_parts(shape, logits_RV, parts_R);
  }
  void join_parts(const LogitRows& shape, std::uint32_t peers,
                  const RowPart* parts_PR,
                  const RowStatistics& found) override {
    models::join_parts(shape, peers, parts_PR, found);
  }
  void logit_gradient(const LogitRows& shape, const RowGradients& gradients,
                      float* logits_RV) override {
    models::logit_gradient(shape, gradients, logits_RV);
  }
  void picked_logits(const PickedIds& picked, const float* logits_RV,
                     float* to_RK) override {
    models::picked_logits(picked, logits_RV, to_RK);
  }
  void join_picked(const PickedIds& picked, std::uint32_t peers,
                   const float* logits_PRK, const float* lse_R,
                   const PickedStatistics& found) override {
    models::join_picked(picked, peers, logits_PRK, lse_R, found);
  }
  void picked_gradient(const PickedIds& picked, const float* logits_RK,
                       const float* d_logprobs_RK,
                       float* d_logits_RV) override {
    models::picked_gradient(picked, logits_RK, d_logprobs_RK, d_logits_RV);
  }
  void largest_logits(const LargestLogits& shape, const float* logits_RV,
                      float* values_RK, std::int32_t* ids_RK) override {
    models::largest_logits(shape, logits_RV, values_RK, ids_RK);
  }
  void scalar_rows(const float* weight_H, std::int64_t width,
                   const float* hidden_TH, std::int64_t rows,
                   float* out_T) override {
    models::scalar_rows(weight_H, width, hidden_TH, rows, out_T);
  }
  void scalar_rows_backward(const float* weight_H, std::int64_t width,
                            const float* hidden_TH, std::int64_t rows,
                            const float* d_out_T, float* d_hidden_TH,
                            float* d_weight_H) override {
    models::scalar_rows_backward(weight_H, width, hidden_TH, rows, d_out_T,
                                 d_hidden_TH, d_weight_H);
  }

  double sum_of_squares(const float* grad,
                        std::span<const OptimizerRun> runs) override {
    return models::sum_of_squares(grad, runs);
  }
  void adamw(const AdamNumbers& numbers, const AdamPlanes& planes,
             std::span<const OptimizerRun> runs) override {
    models::adamw(numbers, planes, runs);
  }
};

} // namespace

Backend& host_backend() {
  static HostBackend backend;
  return backend;
}

} // namespace troupe::models
