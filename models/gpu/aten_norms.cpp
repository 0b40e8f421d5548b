// Norms of rows and of heads of aten_backend.hpp.
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/aten_parts.hpp"
#include "models/gpu/kernels/add_rows.hpp"
#include "models/gpu/kernels/qk_norm.hpp"
#include "models/gpu/kernels/rms_norm.hpp"
#include "models/gpu/kernels/rms_norm_backward.hpp"
#include "models/gpu/own_kernels.hpp"
#include "models/gpu/stored_type.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

namespace {

float aten_plus(NormKind kind) {
  return kind == NormKind::rms_one_plus ? 1.0F : 0.0F;
}

std::int64_t aten_bytes(const NormShape& shape, DType type) {
  return shape.rows * shape.width * static_cast<std::int64_t>(size_bytes(type));
}

/// Returns true if a kernel of our own computes this norm.
bool takes_own_norm(const NormShape& shape, ConstTypedPtr x_TH,
                    ConstTypedPtr y_TH) {
  return shape.kind != NormKind::layer && x_TH.type() == y_TH.type();
}

void own_norm_backward(at::Device device, const NormShape& shape,
                       ConstTypedPtr dy_TH, ConstTypedPtr x_TH,
                       const NormWeights& weights, const float* rstd_T,
                       TypedPtr dx_TH, const NormGrads& grads,
                       Workspace& workspace) {
  const Workspace::Mark mark = workspace.mark();
  const std::int64_t chunks = gpu::RmsNormBackward<float>::blocks(shape.rows);
  float* partial_CH = workspace.take(chunks * shape.width);
  const std::int64_t partial_bytes
    = aten_bytes({chunks, shape.width}, DType::f32);
  gpu::with_stored(x_TH.type(), [&](auto as) {
    using T = typename decltype(as)::type;
    gpu::run_kernel(
      device,
      gpu::RmsNormBackward<T>{as.at(dy_TH), as.at(x_TH), weights.weight_H,
                              rstd_T, as.at(dx_TH), partial_CH, shape.rows,
                              shape.width, aten_plus(shape.kind)},
      chunks,
      {"rms_norm_backward",
       4 * aten_bytes(shape, x_TH.type()) + partial_bytes});
  });
  gpu::run_kernel(
    device, gpu::AddRows{partial_CH, grads.weight_H, chunks, shape.width},
    gpu::AddRows::blocks(shape.width), {"add_rows", partial_bytes});
  workspace.rewind(mark);
}

} // namespace

void AtenBackend::norm(const NormShape& shape, ConstTypedPtr x_TH,
                       const NormWeights& weights, TypedPtr y_TH,
                       float* rstd_T) {
  if (options_.own_kernels && takes_own_norm(shape, x_TH, y_TH))
    return gpu::with_stored(x_TH.type(), [&](auto as) {
      using T = typename decltype(as)::type;
      gpu::run_kernel(device_,
                      gpu::RmsNorm<T>{const_cast<T*>(as.at(x_TH)), nullptr,
                                      weights.weight_H, as.at(y_TH), rstd_T,
                                      shape.width, shape.eps,
                                      aten_plus(shape.kind)},
                      gpu::RmsNorm<T>::blocks(shape.rows),
                      {"rms_norm", 2 * aten_bytes(shape, x_TH.type())});
    });
  at::Tensor x = wide(x_TH, {shape.rows, shape.width});
  const at::Tensor weight
    = aten_weight(view(weights.weight_H, {shape.width}), shape.kind);
  if (shape.kind == NormKind::layer)
    x = x - x.mean(1, /*keepdim=*/true);
  at::Tensor rstd = x.square().mean(1, /*keepdim=*/true).add_(shape.eps);
  if (rstd_T != nullptr) {
    at::Tensor kept = view(rstd_T, {shape.rows, 1});
    rstd = at::rsqrt_out(kept, rstd);
  } else {
    rstd.rsqrt_();
  }
  at::Tensor y = view(y_TH, {shape.rows, shape.width});
  if (shape.kind == NormKind::layer && y.scalar_type() != at::kFloat) {
    y.copy_(at::addcmul(view(weights.bias_H, {shape.width}), x * rstd, weight));
    return;
  }
  at::mul_out(y, x * rstd, weight);
  if (shape.kind == NormKind::layer)
    y.add_(view(weights.bias_H, {shape.width}));
}

void AtenBackend::norm_backward(const NormShape& shape, ConstTypedPtr dy_TH,
                                ConstTypedPtr x_TH, const NormWeights& weights,
                                const float* rstd_T, TypedPtr dx_TH,
                                const NormGrads& grads, Workspace& workspace) {
  if (options_.own_kernels && takes_own_norm(shape, x_TH, dx_TH)
      && dy_TH.type() == x_TH.type())
    return own_norm_backward(device_, shape, dy_TH, x_TH, weights, rstd_T,
                             dx_TH, grads, workspace);
  const bool layer = shape.kind == NormKind::layer;
  const at::Tensor dy = wide(dy_TH, {shape.rows, shape.width});
  at::Tensor x = wide(x_TH, {shape.rows, shape.width});
  if (layer)
    x = x - x.mean(1, /*keepdim=*/true);
  const at::Tensor rstd = view(rstd_T, {shape.rows, 1});
  const at::Tensor normed = x * rstd;
  const at::Tensor g
    = dy * aten_weight(view(weights.weight_H, {shape.width}), shape.kind);
  at::Tensor d = at::addcmul(g, normed, (g * normed).mean(1, /*keepdim=*/true),
                             /*value=*/-1);
  if (layer)
    d.sub_(g.mean(1, /*keepdim=*/true));
  view(grads.weight_H, {shape.width}).add_((dy * normed).sum(0));
  if (layer)
    view(grads.bias_H, {shape.width}).add_(dy.sum(0));
  view(dx_TH, {shape.rows, shape.width}).addcmul_(d, rstd);
}

void AtenBackend::add_column_sums(ConstTypedPtr x_TN, std::int64_t rows,
                                  std::int64_t width, std::int64_t stride,
                                  float* sum_N, Workspace& /*workspace*/) {
  view(sum_N, {width})
    .add_(view(x_TN, {rows, width}, {{stride, 1}})
            .sum(at::IntArrayRef({0}), /*keepdim=*/false, at::kFloat));
}

namespace {

/// Returns the reciprocal root mean square of heads, [T, N, 1].
at::Tensor heads_rstd(const AtenViews& on, const QkNormShape& shape,
                      const at::Tensor& heads_TND) {
  const at::Tensor mean = shape.sums.squares_T != nullptr
                            ? on.view(shape.sums.squares_T, {shape.rows, 1, 1})
                                / static_cast<double>(shape.sums.count)
                            : heads_TND.square().mean(2, /*keepdim=*/true);
  return (mean + shape.eps).rsqrt();
}

gpu::HeadRows aten_heads(const QkNormShape& shape) {
  return {shape.rows, shape.stride, shape.heads, shape.head_dim};
}

/// Returns the bytes of one tensor of heads.
std::int64_t head_bytes(const QkNormShape& shape, DType type) {
  return aten_bytes(NormShape{shape.rows, shape.heads * shape.head_dim}, type);
}

void own_qk_norm(at::Device device, const QkNormShape& shape,
                 const float* weight_D, TypedPtr x, TypedPtr raw_TX) {
  gpu::with_stored(x.type(), [&](auto as) {
    using Kernel = gpu::HeadNorm<typename decltype(as)::type>;
    const gpu::HeadRows heads = aten_heads(shape);
    gpu::run_kernel(
      device,
      Kernel{heads, weight_D, as.at(x), raw_TX ? as.at(raw_TX) : nullptr,
             shape.eps, aten_plus(shape.kind)},
      Kernel::blocks(shape.rows * shape.heads),
      {"qk_norm", (raw_TX ? 3 : 2) * head_bytes(shape, x.type())});
  });
}

void own_qk_norm_backward(at::Device device, const QkNormShape& shape,
                          const float* weight_D, ConstTypedPtr raw_TX,
                          TypedPtr dx, float* d_weight_D,
                          Workspace& workspace) {
  const Workspace::Mark mark = workspace.mark();
  gpu::with_stored(dx.type(), [&](auto as) {
    using Kernel = gpu::HeadNormBackward<typename decltype(as)::type>;
    const gpu::HeadRows heads = aten_heads(shape);
    const std::int64_t count = shape.rows * shape.heads;
    const std::int64_t chunks = Kernel::chunks(count);
    float* partial_CD = workspace.take(chunks * shape.head_dim);
    const std::int64_t partial_bytes
      = aten_bytes({chunks, shape.head_dim}, DType::f32);
    gpu::run_kernel(
      device,
      Kernel{heads, weight_D, as.at(raw_TX), as.at(dx), partial_CD, shape.eps,
             aten_plus(shape.kind)},
      Kernel::blocks(count),
      {"qk_norm_backward", 3 * head_bytes(shape, dx.type()) + partial_bytes});
    gpu::run_kernel(
      device, gpu::AddRows{partial_CD, d_weight_D, chunks, shape.head_dim},
      gpu::AddRows::blocks(shape.head_dim), {"add_rows", partial_bytes});
  });
  workspace.rewind(mark);
}

} // namespace

void AtenBackend::qk_norm(const QkNormShape& shape, const float* weight_D,
                          TypedPtr x, TypedPtr raw_TX) {
  const bool one_type = !raw_TX || raw_TX.type() == x.type();
  if (options_.own_kernels && shape.sums.squares_T == nullptr && one_type)
    return own_qk_norm(device_, shape, weight_D, x, raw_TX);
  const std::int64_t d = shape.head_dim;
  const at::Tensor stored
    = view(x, {shape.rows, shape.heads, d}, {{shape.stride, d, 1}});
  if (raw_TX)
    view(raw_TX, {shape.rows, shape.heads, d}).copy_(stored);
  const at::Tensor heads = stored.to(at::kFloat);
  heads.mul_(heads_rstd(*this, shape, heads))
    .mul_(aten_weight(view(weight_D, {d}), shape.kind));
  if (x.type() != DType::f32)
    stored.copy_(heads);
}

void AtenBackend::qk_norm_backward(const QkNormShape& shape,
                                   const float* weight_D, ConstTypedPtr raw_TX,
                                   TypedPtr dx, float* d_weight_D,
                                   Workspace& workspace) {
  if (options_.own_kernels && shape.sums.squares_T == nullptr
      && raw_TX.type() == dx.type())
    return own_qk_norm_backward(device_, shape, weight_D, raw_TX, dx,
                                d_weight_D, workspace);
  const std::int64_t d = shape.head_dim;
  const at::Tensor raw = wide(raw_TX, {shape.rows, shape.heads, d});
  const at::Tensor stored
    = view(dx, {shape.rows, shape.heads, d}, {{shape.stride, d, 1}});
  const at::Tensor dy = stored.to(at::kFloat);
  const at::Tensor rstd = heads_rstd(*this, shape, raw);
  const at::Tensor normed = raw * rstd;
  view(d_weight_D, {d}).add_((dy * normed).sum(at::IntArrayRef({0, 1})));
  const at::Tensor g = dy * aten_weight(view(weight_D, {d}), shape.kind);
  const at::Tensor mean = shape.sums.dots_T != nullptr
                            ? view(shape.sums.dots_T, {shape.rows, 1, 1}) * rstd
                                / static_cast<double>(shape.sums.count)
                            : (g * normed).mean(2, /*keepdim=*/true);
  stored.copy_((g - normed * mean) * rstd);
}

void AtenBackend::head_sums(const QkNormShape& shape, const TypedRowPair& rows,
                            const float* weight, float* sums_T) {
  const std::int64_t width = shape.heads * shape.head_dim;
  at::Tensor products
    = wide(rows.a, {shape.rows, width}, {{rows.a_stride, 1}})
      * wide(rows.b, {shape.rows, width}, {{rows.b_stride, 1}});
  if (weight != nullptr)
    products.mul_(aten_weight(view(weight, {width}), shape.kind));
  view(sums_T, {shape.rows}).copy_(products.sum(1));
}

} // namespace troupe::models
