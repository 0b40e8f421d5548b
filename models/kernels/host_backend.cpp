#include "models/kernels/host_backend.hpp"

#include "config/base/error.hpp"
#include "models/kernels/soft_cap.hpp"

#include <cstring>
#include <vector>

namespace troupe::models {

namespace {

ConstMatrix of_floats(const ConstTypedMatrix& matrix) {
  return {matrix.data.floats(), matrix.row_stride, matrix.col_stride};
}

MutableMatrix of_floats(const TypedMatrix& matrix) {
  return {matrix.data.floats(), matrix.stride};
}

class HostWeight final : public PreparedWeight {
public:
  std::int64_t in() const override {
    return packed.k();
  }
  std::int64_t out() const override {
    return packed.n();
  }
  const void* place() const override {
    return this;
  }

  PackedMatrix packed; // of the transposed weight
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

  void fill(TypedPtr x, std::int64_t count, float value) override {
    fill_floats(x.floats(), count, value);
  }
  void copy(ConstTypedPtr from, TypedPtr to, std::int64_t count) override {
    copy_floats(from.floats(), to.floats(), count);
  }
  void copy_box(const BoxCopy& box, ConstTypedPtr from, TypedPtr to) override {
    models::copy_box(box, from.floats(), to.floats());
  }
  void add(ConstTypedPtr a, ConstTypedPtr b, TypedPtr to,
           std::int64_t count) override {
    add_floats(a.floats(), b.floats(), to.floats(), count);
  }
  void scale(TypedPtr x, std::int64_t count, float factor) override {
    scale_floats(x.floats(), count, factor);
  }
  void gather_rows(const RowList& list, ConstTypedPtr from,
                   TypedPtr to) override {
    models::gather_rows(list, from.floats(), to.floats());
  }
  void add_rows(const RowList& list, ConstTypedPtr from, TypedPtr to) override {
    models::add_rows(list, from.floats(), to.floats());
  }
  void scatter_rows(const RowList& list, ConstTypedPtr from,
                    TypedPtr to) override {
    models::scatter_rows(list, from.floats(), to.floats());
  }
  void row_dots(const WholeRows& shape, ConstTypedPtr a, ConstTypedPtr b,
                float* dots_R) override {
    models::row_dots(shape, a.floats(), b.floats(), dots_R);
  }
  void scale_rows(std::span<const float> weights_R, std::int64_t width,
                  TypedPtr x) override {
    models::scale_rows(weights_R, width, x.floats());
  }

  void gemm(const GemmShape& shape, const ConstTypedMatrix& a,
            const ConstTypedMatrix& b, const TypedMatrix& c,
            const GemmOptions& options) override {
    GemmOptions fast = options;
    fast.parts = true;
    models::gemm(shape, of_floats(a), of_floats(b), of_floats(c), fast);
  }
  std::unique_ptr<PreparedWeight>
  prepare(std::span<const at::Tensor> parts, DType operands,
          std::unique_ptr<PreparedWeight> old) override {
    if (!old)
      old = std::make_unique<HostWeight>();
    PackedMatrix& packed = static_cast<HostWeight&>(*old).packed;
    packed = {}; // frees its memory first
    if (parts.size() == 1) {
      packed = pack_weight(parts[0].const_data_ptr<float>(), parts[0].size(0),
                           parts[0].size(1), operands);
      return old;
    }
    std::vector<float> rows;
    std::int64_t out = 0;
    for (const at::Tensor& part : parts) {
      TROUPE_CHECK(part.is_contiguous() && part.scalar_type() == at::kFloat,
                   "weights are contiguous f32");
      const float* from = part.const_data_ptr<float>();
      rows.insert(rows.end(), from, from + part.numel());
      out += part.size(0);
    }
    packed = pack_weight(rows.data(), out, parts[0].size(1), operands);
    return old;
  }
  void product(std::int64_t rows, ConstTypedPtr x, const PreparedWeight& weight,
               const TypedMatrix& y, const GemmOptions& options) override {
    models::gemm(rows, {x.floats(), weight.in()},
                 static_cast<const HostWeight&>(weight).packed, of_floats(y),
                 options);
  }

  void norm(const NormShape& shape, ConstTypedPtr x_TH,
            const NormWeights& weights, TypedPtr y_TH, float* rstd_T) override {
    models::norm(shape, x_TH.floats(), weights, y_TH.floats(), rstd_T);
  }
  void norm_backward(const NormShape& shape, ConstTypedPtr dy_TH,
                     ConstTypedPtr x_TH, const NormWeights& weights,
                     const float* rstd_T, TypedPtr dx_TH,
                     const NormGrads& grads, Workspace& workspace) override {
    models::norm_backward(shape, dy_TH.floats(), x_TH.floats(), weights, rstd_T,
                          dx_TH.floats(), grads, workspace);
  }
  void add_column_sums(ConstTypedPtr x_TN, std::int64_t rows,
                       std::int64_t width, std::int64_t stride, float* sum_N,
                       Workspace& workspace) override {
    models::add_column_sums(x_TN.floats(), rows, width, stride, sum_N,
                            workspace);
  }
  void qk_norm(const QkNormShape& shape, const float* weight_D, TypedPtr x,
               TypedPtr raw_TX) override {
    models::qk_norm(shape, weight_D, x.floats(), raw_TX.floats());
  }
  void qk_norm_backward(const QkNormShape& shape, const float* weight_D,
                        ConstTypedPtr raw_TX, TypedPtr dx, float* d_weight_D,
                        Workspace& workspace) override {
    models::qk_norm_backward(shape, weight_D, raw_TX.floats(), dx.floats(),
                             d_weight_D, workspace);
  }
  void head_sums(const QkNormShape& shape, const TypedRowPair& rows,
                 const float* weight, float* sums_T) override {
    models::head_sums(
      shape, {rows.a.floats(), rows.b.floats(), rows.a_stride, rows.b_stride},
      weight, sums_T);
  }
  void rope(const RopeShape& shape, const RopeTable& table,
            std::span<const std::int32_t> positions_T, TypedPtr x,
            bool backwards) override {
    models::rope(shape, table, positions_T.data(), x.floats(), backwards);
  }
  void attention(const AttentionShape& shape, ConstTypedPtr qkv_TX,
                 TypedPtr context_TX, float* lse_AT) override {
    models::attention(shape, qkv_TX.floats(), context_TX.floats(), lse_AT);
  }
  void attention_backward(const AttentionShape& shape, ConstTypedPtr qkv_TX,
                          ConstTypedPtr context_TX, const float* lse_AT,
                          ConstTypedPtr d_context_TX,
                          TypedPtr d_qkv_TX) override {
    models::attention_backward(shape, qkv_TX.floats(), context_TX.floats(),
                               lse_AT, d_context_TX.floats(),
                               d_qkv_TX.floats());
  }
  void piece_attention(const PieceShape& shape, const PieceRows& rows,
                       TypedPtr context_TX, float* lse_AT) override {
    models::piece_attention(shape, rows, context_TX, lse_AT);
  }
  void piece_attention_backward(const PieceShape& shape, const PieceRows& rows,
                                const PieceContext& found,
                                ConstTypedPtr d_context_TX,
                                const PieceGrads& to) override {
    models::piece_attention_backward(shape, rows, found, d_context_TX, to);
  }
  void embed(const Embedding& from, std::span<const DecodeToken> tokens,
             TypedPtr to) override {
    models::embed(from, tokens, to.floats());
  }
  void decode_attention(const DecodeAttention& what, const DecodeTokens& tokens,
                        KvCache& cache, TypedPtr qkv_RX,
                        TypedPtr context_RX) override {
    models::decode_attention(what, tokens, cache, qkv_RX.floats(),
                             context_RX.floats());
  }
  void mlp_unit(const MlpShape& shape, ConstTypedPtr in,
                TypedPtr act) override {
    models::mlp_unit(shape, in.floats(), act.floats());
  }
  void mlp_unit_backward(const MlpShape& shape, TypedPtr in,
                         TypedPtr d_act) override {
    models::mlp_unit_backward(shape, in.floats(), d_act.floats());
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
                   ConstTypedPtr hidden_TH, std::int64_t rows,
                   float* out_T) override {
    models::scalar_rows(weight_H, width, hidden_TH.floats(), rows, out_T);
  }
  void scalar_rows_backward(const float* weight_H, std::int64_t width,
                            ConstTypedPtr hidden_TH, std::int64_t rows,
                            const float* d_out_T, TypedPtr d_hidden_TH,
                            float* d_weight_H) override {
    models::scalar_rows_backward(weight_H, width, hidden_TH.floats(), rows,
                                 d_out_T, d_hidden_TH.floats(), d_weight_H);
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
