#include "deferred_backend.hpp"

#include "models/kernels/host_backend.hpp"

#include "deferred_copies.hpp"
#include "far_memory.hpp"

#include <cstring>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace troupe::testing {

namespace {

using namespace models;

void* late_take(std::size_t size_bytes) {
  not_in_a_capture("memory is taken");
  return deferred_memory().take(size_bytes);
}

void late_give(void* data) {
  if (data == nullptr)
    return;
  DeferredBackend::instance().wait();
  finish_deferred_copies(data);
  deferred_memory().give(data);
}

void late_read(const void* from, void* to, std::size_t size_bytes) {
  DeferredBackend::instance().wait();
  const FarMemory::Reach reach(deferred_memory());
  std::memcpy(to, from, size_bytes);
}

void late_write(const void* from, void* to, std::size_t size_bytes) {
  DeferredBackend::instance().write(from, to, size_bytes);
}

void late_copy(const void* from, void* to, std::span<const ByteRuns> runs) {
  DeferredBackend::instance().wait();
  const FarMemory::Reach reach(deferred_memory());
  for (const ByteRuns& part : runs)
    copy_runs(part, from, to);
}

bool late_owns(const void* data) {
  return deferred_memory().owns(data);
}

/// Returns the last position that a group's tokens attend to, of those that
/// have a token.
std::int64_t late_most_position(std::span<const DecodeToken> tokens,
                                const DecodeGroup& group,
                                const KvCache& cache) {
  const DecodeToken& last = tokens[group.first + group.tokens - 1];
  return last.position == cache.unused_place() ? 0 : last.position;
}

/// Returns where a cache's numbers are.
std::tuple<TypedPtr, std::int64_t, std::int64_t> late_place(KvCache& cache) {
  return {cache.keys(0, 0, 0), cache.num_pages(), cache.capacity()};
}

} // namespace

std::unique_ptr<GraphRecorder> DeferredBackend::recorder() {
  return make_recorder();
}

DeferredBackend& DeferredBackend::instance() {
  static auto* late
    = new DeferredBackend(host_backend()); // never deleted: memory may outlive
                                           // other statics
  return *late;
}

const net::BlockMemory* DeferredBackend::memory() const {
  static const net::BlockMemory late{late_take,  late_give,         late_read,
                                     late_write, late_copy,         late_owns,
                                     nullptr,    &deferred_copies()};
  return &late;
}

void DeferredBackend::wait() {
  run_all();
}

void DeferredBackend::write(const void* from, void* to,
                            std::size_t size_bytes) {
  const auto* bytes = static_cast<const std::byte*>(from);
  later_with_tables(
    [this, to, values = std::vector(bytes, bytes + size_bytes)] {
      inner_.write(values.data(), to, values.size());
    });
}

void DeferredBackend::fill(TypedPtr x, std::int64_t count, float value) {
  later([=, this] { inner_.fill(x, count, value); });
}

void DeferredBackend::copy(ConstTypedPtr from, TypedPtr to,
                           std::int64_t count) {
  later([=, this] { inner_.copy(from, to, count); });
}

void DeferredBackend::copy_box(const BoxCopy& box, ConstTypedPtr from,
                               TypedPtr to) {
  later([=, this] { inner_.copy_box(box, from, to); });
}

void DeferredBackend::add(ConstTypedPtr a, ConstTypedPtr b, TypedPtr to,
                          std::int64_t count) {
  later([=, this] { inner_.add(a, b, to, count); });
}

void DeferredBackend::scale(TypedPtr x, std::int64_t count, float factor) {
  later([=, this] { inner_.scale(x, count, factor); });
}

void DeferredBackend::gemm(const GemmShape& shape, const ConstTypedMatrix& a,
                           const ConstTypedMatrix& b, const TypedMatrix& c,
                           const GemmOptions& options) {
  later([=, this] { inner_.gemm(shape, a, b, c, options); });
}

std::unique_ptr<PreparedWeight>
DeferredBackend::prepare(std::span<const at::Tensor> parts, DType operands,
                         std::unique_ptr<PreparedWeight> old) {
  wait();
  const FarMemory::Reach reach(deferred_memory());
  return inner_.prepare(parts, operands, std::move(old));
}

void DeferredBackend::product(std::int64_t rows, ConstTypedPtr x,
                              const PreparedWeight& weight,
                              const TypedMatrix& y,
                              const GemmOptions& options) {
  later([=, this, &weight] { inner_.product(rows, x, weight, y, options); });
}

void DeferredBackend::norm(const NormShape& shape, ConstTypedPtr x_TH,
                           const NormWeights& weights, TypedPtr y_TH,
                           float* rstd_T) {
  later([=, this] { inner_.norm(shape, x_TH, weights, y_TH, rstd_T); });
}

void DeferredBackend::norm_backward(const NormShape& shape, ConstTypedPtr dy_TH,
                                    ConstTypedPtr x_TH,
                                    const NormWeights& weights,
                                    const float* rstd_T, TypedPtr dx_TH,
                                    const NormGrads& grads,
                                    Workspace& /*workspace*/) {
  later([=, this] {
    inner_.norm_backward(shape, dy_TH, x_TH, weights, rstd_T, dx_TH, grads,
                         scratch_);
  });
}

void DeferredBackend::add_column_sums(ConstTypedPtr x_TN, std::int64_t rows,
                                      std::int64_t width, std::int64_t stride,
                                      float* sum_N, Workspace& /*workspace*/) {
  later([=, this] {
    inner_.add_column_sums(x_TN, rows, width, stride, sum_N, scratch_);
  });
}

void DeferredBackend::qk_norm(const QkNormShape& shape, const float* weight_D,
                              TypedPtr x, TypedPtr raw_TX) {
  later([=, this] { inner_.qk_norm(shape, weight_D, x, raw_TX); });
}

void DeferredBackend::qk_norm_backward(const QkNormShape& shape,
                                       const float* weight_D,
                                       ConstTypedPtr raw_TX, TypedPtr dx,
                                       float* d_weight_D,
                                       Workspace& /*workspace*/) {
  later([=, this] {
    inner_.qk_norm_backward(shape, weight_D, raw_TX, dx, d_weight_D, scratch_);
  });
}

void DeferredBackend::head_sums(const QkNormShape& shape,
                                const TypedRowPair& rows, const float* weight,
                                float* sums_T) {
  later([=, this] { inner_.head_sums(shape, rows, weight, sums_T); });
}

void DeferredBackend::rope(const RopeShape& shape, const RopeTable& table,
                           std::span<const std::int32_t> positions_T,
                           TypedPtr x, bool backwards) {
  later_with_tables([=, this, &table, positions = kept_table(positions_T)] {
    inner_.rope(shape, table, positions, x, backwards);
  });
}

void DeferredBackend::attention(const AttentionShape& shape,
                                ConstTypedPtr qkv_TX, TypedPtr context_TX,
                                float* lse_AT) {
  later_with_tables([=, this, cu_seqlens = kept_table(shape.cu_seqlens),
                     continues = kept_table(shape.continues)] {
    AttentionShape own = shape;
    own.cu_seqlens = cu_seqlens;
    own.continues = continues;
    inner_.attention(own, qkv_TX, context_TX, lse_AT);
  });
}

void DeferredBackend::attention_backward(
  const AttentionShape& shape, ConstTypedPtr qkv_TX, ConstTypedPtr context_TX,
  const float* lse_AT, ConstTypedPtr d_context_TX, TypedPtr d_qkv_TX) {
  later_with_tables([=, this, cu_seqlens = kept_table(shape.cu_seqlens),
                     continues = kept_table(shape.continues)] {
    AttentionShape own = shape;
    own.cu_seqlens = cu_seqlens;
    own.continues = continues;
    inner_.attention_backward(own, qkv_TX, context_TX, lse_AT, d_context_TX,
                              d_qkv_TX);
  });
}

void DeferredBackend::piece_attention(const PieceShape& shape,
                                      const PieceRows& rows,
                                      TypedPtr context_TX, float* lse_AT) {
  later_with_tables([=, this, pieces = kept_table(shape.pieces)] {
    PieceShape own = shape;
    own.pieces = pieces;
    inner_.piece_attention(own, rows, context_TX, lse_AT);
  });
}

void DeferredBackend::piece_attention_backward(const PieceShape& shape,
                                               const PieceRows& rows,
                                               const PieceContext& found,
                                               ConstTypedPtr d_context_TX,
                                               const PieceGrads& to) {
  later_with_tables([=, this, pieces = kept_table(shape.pieces)] {
    PieceShape own = shape;
    own.pieces = pieces;
    inner_.piece_attention_backward(own, rows, found, d_context_TX, to);
  });
}

void DeferredBackend::decode_attention(const DecodeAttention& what,
                                       const DecodeTokens& tokens,
                                       KvCache& cache, TypedPtr qkv_RX,
                                       TypedPtr context_RX) {
  later([=, this, &cache, of_device = tokens.all,
         groups = kept_table(tokens.groups), place = late_place(cache)] {
    if (late_place(cache) != place)
      throw std::logic_error("the cache has moved since this was asked for");
    for (const DecodeGroup& group : groups)
      if (group.keys <= late_most_position(of_device, group, cache))
        throw std::logic_error("a row sees more keys than were asked for");
    inner_.decode_attention(what, {of_device, groups}, cache, qkv_RX,
                            context_RX);
  });
}

void DeferredBackend::mlp_unit(const MlpShape& shape, ConstTypedPtr in,
                               TypedPtr act) {
  later([=, this] { inner_.mlp_unit(shape, in, act); });
}

void DeferredBackend::mlp_unit_backward(const MlpShape& shape, TypedPtr in,
                                        TypedPtr d_act) {
  later([=, this] { inner_.mlp_unit_backward(shape, in, d_act); });
}

void DeferredBackend::cap_logits(float* x, std::int64_t count, float cap) {
  later([=, this] { inner_.cap_logits(x, count, cap); });
}

void DeferredBackend::logit_parts(const LogitRows& shape,
                                  const float* logits_RV, RowPart* parts_R) {
  later_with_tables([=, this, targets = kept_table(shape.targets_R)] {
    LogitRows own = shape;
    own.targets_R = targets;
    inner_.logit_parts(own, logits_RV, parts_R);
  });
}

void DeferredBackend::join_parts(const LogitRows& shape, std::uint32_t peers,
                                 const RowPart* parts_PR,
                                 const RowStatistics& found) {
  later([=, this] { inner_.join_parts(shape, peers, parts_PR, found); });
}

void DeferredBackend::logit_gradient(const LogitRows& shape,
                                     const RowGradients& gradients,
                                     float* logits_RV) {
  later_with_tables([=, this, targets = kept_table(shape.targets_R)] {
    LogitRows own = shape;
    own.targets_R = targets;
    inner_.logit_gradient(own, gradients, logits_RV);
  });
}

void DeferredBackend::scalar_rows(const float* weight_H, std::int64_t width,
                                  ConstTypedPtr hidden_TH, std::int64_t rows,
                                  float* out_T) {
  later(
    [=, this] { inner_.scalar_rows(weight_H, width, hidden_TH, rows, out_T); });
}

void DeferredBackend::scalar_rows_backward(
  const float* weight_H, std::int64_t width, ConstTypedPtr hidden_TH,
  std::int64_t rows, const float* d_out_T, TypedPtr d_hidden_TH,
  float* d_weight_H) {
  later([=, this] {
    inner_.scalar_rows_backward(weight_H, width, hidden_TH, rows, d_out_T,
                                d_hidden_TH, d_weight_H);
  });
}

double DeferredBackend::sum_of_squares(const float* grad,
                                       std::span<const OptimizerRun> runs) {
  wait();
  const FarMemory::Reach reach(deferred_memory());
  return inner_.sum_of_squares(grad, runs);
}

void DeferredBackend::adamw(const AdamNumbers& numbers,
                            const AdamPlanes& planes,
                            std::span<const OptimizerRun> runs) {
  later_with_tables(
    [=, this, own = kept_table(runs)] { inner_.adamw(numbers, planes, own); });
}

} // namespace troupe::testing
