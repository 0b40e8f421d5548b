// Logits and scalar heads of aten_backend.hpp.
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/kernels/logit_gradient.hpp"
#include "models/gpu/kernels/logit_parts.hpp"
#include "models/gpu/own_kernels.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace troupe::models {

namespace {

/// Logits of one operation: libtorch holds several temporaries of their size,
/// which no plan counts. Enough to be worth a launch.
constexpr std::int64_t aten_logits_at_once = std::int64_t{1} << 24;

/// Returns the bytes of the logits.
std::int64_t logit_bytes(const LogitRows& shape) {
  return shape.rows * shape.vocab * static_cast<std::int64_t>(sizeof(float));
}

void logit_gradient_piece(const AtenViews& on, const LogitRows& shape,
                          const RowGradients& gradients, float* logits_RV) {
  at::Tensor logits = on.view(logits_RV, {shape.rows, shape.vocab});
  const at::Tensor targets = on.indices(shape.targets_R).unsqueeze(1);
  const auto column = [&](const float* values_R) {
    return on.view(values_R, {shape.rows, 1});
  };
  const at::Tensor logp
    = logits * shape.inverse_temperature - column(gradients.lse_R);
  const at::Tensor slope = 1 - (logits * shape.inverse_cap).square();
  at::Tensor d = at::zeros_like(logits);
  if (gradients.d_entropy_R != nullptr)
    d.add_(column(gradients.d_entropy_R)
           * (logp + column(gradients.entropy_R)));
  if (gradients.d_logprobs_R != nullptr)
    d.add_(column(gradients.d_logprobs_R));
  d.mul_(at::exp(logp)).neg_();
  if (gradients.d_logprobs_R != nullptr) {
    const at::Tensor here
      = (targets >= 0).logical_and(targets < shape.vocab).to(at::kFloat);
    d.scatter_add_(1, targets.clamp(0, shape.vocab - 1),
                   column(gradients.d_logprobs_R) * here);
  }
  logits.copy_(d * slope * shape.inverse_temperature);
}

} // namespace

std::int64_t AtenBackend::logits_at_once() const {
  return device_.is_cpu() ? defaults::logits_at_once
                          : defaults::logits_at_once_on_gpu;
}

void AtenBackend::cap_logits(float* x, std::int64_t count, float cap) {
  view(x, {count}).div_(cap).tanh_().mul_(cap);
}

void AtenBackend::keep_logits(const KeptIds& kept, float* logits_RV) {
  std::vector<std::int64_t> whole; // rows that keep every token
  std::vector<std::int64_t> places;
  for (std::int64_t r = 0; r < kept.rows; ++r) {
    const auto at = static_cast<std::size_t>(r);
    const std::int64_t first = kept.offsets_R1[at];
    const std::int64_t last = kept.offsets_R1[at + 1];
    if (first == last)
      whole.push_back(r);
    for (auto i = first; i < last; ++i) {
      const std::int64_t id
        = kept.ids[static_cast<std::size_t>(i)] - kept.first_token;
      if (id >= 0 && id < kept.vocab)
        places.push_back(r * kept.vocab + id);
    }
  }
  at::Tensor logits = view(logits_RV, {kept.rows, kept.vocab});
  at::Tensor removed
    = at::ones({kept.rows, kept.vocab}, logits.options().dtype(at::kBool));
  removed.view(-1).index_fill_(0, indices(places), 0);
  removed.index_fill_(0, indices(whole), 0);
  logits.masked_fill_(removed, double{removed_logit});
}

void AtenBackend::logit_parts(const LogitRows& shape, const float* logits_RV,
                              RowPart* parts_R) {
  if (options_.own_kernels) {
    const at::Tensor targets = indices(shape.targets_R);
    return gpu::run_kernel(
      device_,
      gpu::LogitParts<float>{logits_RV, targets.const_data_ptr<std::int64_t>(),
                             parts_R, shape.vocab, shape.inverse_temperature},
      gpu::LogitParts<float>::blocks(shape.rows),
      {"logit_parts", 2 * logit_bytes(shape)});
  }
  const at::Tensor logits = view(logits_RV, {shape.rows, shape.vocab});
  const at::Tensor targets = indices(shape.targets_R).unsqueeze(1);
  const at::Tensor elsewhere = (targets < 0).logical_or(targets >= shape.vocab);
  const at::Tensor top = logits.amax(1, /*keepdim=*/true);
  const at::Tensor below = (logits - top) * shape.inverse_temperature;
  const at::Tensor e = at::exp(below);
  const at::Tensor target
    = logits.gather(1, targets.clamp(0, shape.vocab - 1))
        .masked_fill(elsewhere, -std::numeric_limits<double>::infinity());
  view(&parts_R->top, {shape.rows, row_part_floats})
    .copy_(at::cat({top, e.sum(1, /*keepdim=*/true),
                    (e * below).sum(1, /*keepdim=*/true), target},
                   1));
}

void AtenBackend::join_parts(const LogitRows& shape, std::uint32_t peers,
                             const RowPart* parts_PR,
                             const RowStatistics& found) {
  if (options_.own_kernels)
    return gpu::run_kernel(
      device_,
      gpu::JoinLogitParts{parts_PR, peers, shape.rows,
                          shape.inverse_temperature, found},
      gpu::JoinLogitParts::blocks(shape.rows),
      {"join_logit_parts", shape.rows * (peers + 1) * row_part_floats
                             * static_cast<std::int64_t>(sizeof(float))});
  const at::Tensor parts
    = view(&parts_PR->top, {std::int64_t{peers}, shape.rows, row_part_floats});
  const auto column = [&](std::int64_t i) { return parts.select(2, i); };
  const at::Tensor top = column(0).amax(0);
  const at::Tensor below = (column(0) - top) * shape.inverse_temperature;
  const at::Tensor scale = at::exp(below);
  const at::Tensor sum = (scale * column(1)).sum(0);
  const at::Tensor weighted = (scale * (column(2) + below * column(1))).sum(0);
  const at::Tensor log_sum = at::log(sum);
  view(found.logprobs_R, {shape.rows})
    .copy_((column(3).amax(0) - top) * shape.inverse_temperature - log_sum);
  view(found.entropy_R, {shape.rows}).copy_(log_sum - weighted / sum);
  view(found.lse_R, {shape.rows})
    .copy_(top * shape.inverse_temperature + log_sum);
}

void AtenBackend::logit_gradient(const LogitRows& shape,
                                 const RowGradients& gradients,
                                 float* logits_RV) {
  if (options_.own_kernels) {
    const at::Tensor targets = indices(shape.targets_R);
    return gpu::run_kernel(device_,
                           gpu::LogitGradient<float>{
                             logits_RV, targets.const_data_ptr<std::int64_t>(),
                             gradients, shape.vocab, shape.inverse_temperature,
                             shape.inverse_cap},
                           gpu::LogitGradient<float>::blocks(shape.rows),
                           {"logit_gradient", 2 * logit_bytes(shape)});
  }
  const std::int64_t rows_at_once
    = std::max<std::int64_t>(1, aten_logits_at_once / shape.vocab);
  for (std::int64_t first = 0; first < shape.rows; first += rows_at_once) {
    LogitRows piece = shape;
    piece.rows = std::min(rows_at_once, shape.rows - first);
    piece.targets_R = shape.targets_R.subspan(
      static_cast<std::size_t>(first), static_cast<std::size_t>(piece.rows));
    const auto from = [&](const float* values_R) {
      return values_R == nullptr ? nullptr : values_R + first;
    };
    logit_gradient_piece(*this, piece,
                         {from(gradients.d_logprobs_R),
                          from(gradients.d_entropy_R),
                          from(gradients.entropy_R), from(gradients.lse_R)},
                         logits_RV + first * shape.vocab);
  }
}

void AtenBackend::picked_logits(const PickedIds& picked, const float* logits_RV,
                                float* to_RK) {
  const at::Tensor ids
    = indices(picked.ids_RK).view({picked.rows, picked.per_row});
  const at::Tensor elsewhere = (ids < 0).logical_or(ids >= picked.vocab);
  view(to_RK, {picked.rows, picked.per_row})
    .copy_(view(logits_RV, {picked.rows, picked.vocab})
             .gather(1, ids.clamp(0, picked.vocab - 1))
             .masked_fill(elsewhere, -std::numeric_limits<double>::infinity()));
}

void AtenBackend::join_picked(const PickedIds& picked, std::uint32_t peers,
                              const float* logits_PRK, const float* lse_R,
                              const PickedStatistics& found) {
  const at::Tensor logits
    = view(logits_PRK, {std::int64_t{peers}, picked.rows, picked.per_row})
        .amax(0);
  view(found.logits_RK, {picked.rows, picked.per_row}).copy_(logits);
  view(found.logprobs_RK, {picked.rows, picked.per_row})
    .copy_(logits * picked.inverse_temperature - view(lse_R, {picked.rows, 1}));
}

void AtenBackend::picked_gradient(const PickedIds& picked,
                                  const float* logits_RK,
                                  const float* d_logprobs_RK,
                                  float* d_logits_RV) {
  const at::Tensor ids
    = indices(picked.ids_RK).view({picked.rows, picked.per_row});
  const at::Tensor here
    = (ids >= 0).logical_and(ids < picked.vocab).to(at::kFloat);
  const at::Tensor slope
    = 1
      - (view(logits_RK, {picked.rows, picked.per_row}) * picked.inverse_cap)
          .square();
  view(d_logits_RV, {picked.rows, picked.vocab})
    .scatter_add_(1, ids.clamp(0, picked.vocab - 1),
                  view(d_logprobs_RK, {picked.rows, picked.per_row}) * slope
                    * picked.inverse_temperature * here);
}

void AtenBackend::largest_logits(const LargestLogits& shape,
                                 const float* logits_RV, float* values_RK,
                                 std::int32_t* ids_RK) {
  const auto found = std::min(shape.per_row, shape.vocab);
  const auto [values, ids] = at::sort(
    view(logits_RV, {shape.rows, shape.vocab}), /*stable=*/true, /*dim=*/1,
    /*descending=*/true);
  at::Tensor to = view(values_RK, {shape.rows, shape.per_row});
  to.fill_(-std::numeric_limits<double>::infinity());
  to.narrow(1, 0, found).copy_(values.narrow(1, 0, found));
  at::Tensor to_ids = view_of_ints(ids_RK, {shape.rows, shape.per_row});
  to_ids.fill_(-1);
  to_ids.narrow(1, 0, found).copy_(ids.narrow(1, 0, found) + shape.first_token);
}

void AtenBackend::scalar_rows(const float* weight_H, std::int64_t width,
                              ConstTypedPtr hidden_TH, std::int64_t rows,
                              float* out_T) {
  view(out_T, {rows})
    .copy_(at::mv(wide(hidden_TH, {rows, width}), view(weight_H, {width})));
}

void AtenBackend::scalar_rows_backward(const float* weight_H,
                                       std::int64_t width,
                                       ConstTypedPtr hidden_TH,
                                       std::int64_t rows, const float* d_out_T,
                                       TypedPtr d_hidden_TH,
                                       float* d_weight_H) {
  const at::Tensor d_out = view(d_out_T, {rows});
  view(d_hidden_TH, {rows, width})
    .add_(at::outer(d_out, view(weight_H, {width})));
  view(d_weight_H, {width})
    .add_(at::mv(wide(hidden_TH, {rows, width}).t(), d_out));
}

} // namespace troupe::models
