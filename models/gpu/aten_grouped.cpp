// Products of many weights at once of aten_backend.hpp: ATen's grouped product,
// which reads where groups end on the device. It takes and gives bf16, so that
// gradients of weights are rounded once before they are added in fp32. Where it
// does not take the operands, and on GPUs for which ATen has a loop only that
// waits for the device, there is our own loop.
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/grouped_weights.hpp"
#include "models/kernels/typed_tensor.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace troupe::models {

namespace {

/// Groups of one launch, and their rows.
struct GroupPiece {
  std::size_t first = 0;
  std::int64_t count = 0;
  std::int64_t begin = 0;
  std::int64_t rows = 0;
};

std::vector<GroupPiece> pieces_of(const GroupedShape& shape) {
  const auto fitting = std::clamp<std::size_t>(
    static_cast<std::size_t>(aten_grouped_numbers / (shape.out * shape.in)), 1,
    aten_most_groups);
  std::vector<GroupPiece> pieces;
  for (std::size_t first = 0; first < shape.groups(); first += fitting) {
    const std::size_t end = std::min(first + fitting, shape.groups());
    const std::int64_t begin = shape.begin_G[first];
    if (const std::int64_t rows = shape.begin_G[end] - begin; rows > 0)
      pieces.push_back(
        {first, static_cast<std::int64_t>(end - first), begin, rows});
  }
  return pieces;
}

/// Returns where each group of a piece ends, from the piece's first row on.
std::vector<std::int32_t> ends_of(const GroupedShape& shape,
                                  const GroupPiece& piece) {
  std::vector<std::int32_t> ends;
  for (std::int64_t g = 1; g <= piece.count; ++g)
    ends.push_back(static_cast<std::int32_t>(
      shape.begin_G[piece.first + static_cast<std::size_t>(g)] - piece.begin));
  return ends;
}

std::int64_t step_of(const GroupedShape& shape, GroupedWeights weights) {
  return step_of_weights(weights, shape.out * shape.in);
}

bool is_aligned(const ConstTypedMatrix& rows) {
  return is_aligned_bf16(rows.data) && rows.row_stride % aten_vector == 0;
}

/// Returns true if ATen's grouped product takes rows of this shape.
bool takes_rows(const GroupedShape& shape, const ConstTypedMatrix& a,
                const ConstTypedMatrix& b) {
  return shape.operands == DType::bf16 && shape.out % aten_vector == 0
         && shape.in % aten_vector == 0 && is_aligned(a) && is_aligned(b);
}

/// Returns the numbers between weights if ATen takes them; else 0.
std::int64_t step_of_operands(const GroupedShape& shape,
                              GroupedWeights weights) {
  const std::int64_t step = step_of(shape, weights);
  const bool is_rounded = weights[0].type() != DType::bf16; // to a new tensor
  return is_rounded || (step % aten_vector == 0 && is_aligned({weights[0], 0}))
           ? step
           : 0;
}

} // namespace

std::int64_t step_of_weights(std::span<const ConstTypedPtr> weights,
                             std::int64_t numbers) {
  const auto at = [&](std::size_t g) {
    return static_cast<const std::byte*>(weights[g].data());
  };
  if (weights.empty() || !weights[0])
    return 0;
  if (weights.size() == 1)
    return numbers;
  const std::ptrdiff_t step = at(1) - at(0);
  for (std::size_t g = 1; g < weights.size(); ++g)
    if (!weights[g] || at(g) - at(g - 1) != step)
      return 0;
  return step / static_cast<std::ptrdiff_t>(size_bytes(weights[0].type()));
}

bool is_aligned_bf16(ConstTypedPtr data) {
  return data.type() == DType::bf16
         && reinterpret_cast<std::uintptr_t>(data.data()) % 16 == 0;
}

std::int64_t AtenBackend::grouped_rows_at_once() const {
  return options_.grouped_products ? defaults::grouped_rows_at_once_on_gpu
                                   : defaults::grouped_rows_at_once;
}

void AtenBackend::grouped_product(const GroupedShape& shape,
                                  const ConstTypedMatrix& x,
                                  GroupedWeights weights,
                                  const TypedMatrix& y) {
  const std::int64_t step = step_of_operands(shape, weights);
  if (!options_.grouped_products || step == 0
      || !takes_rows(shape, x, {y.data, y.stride}))
    return Backend::grouped_product(shape, x, weights, y);
  for (const GroupPiece& piece : pieces_of(shape)) {
    const at::Tensor own
      = view(weights[piece.first], {piece.count, shape.out, shape.in},
             {{step, shape.in, 1}})
          .to(at::kBFloat16);
    view(y.data + piece.begin * y.stride, {piece.rows, shape.out},
         {{y.stride, 1}})
      .copy_(at::_grouped_mm(view(x.data + piece.begin * x.row_stride,
                                  {piece.rows, shape.in}, {{x.row_stride, 1}}),
                             own.transpose(1, 2),
                             cached(ends_of(shape, piece))));
  }
}

void AtenBackend::grouped_grad_x(const GroupedShape& shape,
                                 const ConstTypedMatrix& dy,
                                 GroupedWeights weights,
                                 const TypedMatrix& dx) {
  const std::int64_t step = step_of_operands(shape, weights);
  if (!options_.grouped_products || step == 0 || shape.accumulate
      || !takes_rows(shape, dy, {dx.data, dx.stride}))
    return Backend::grouped_grad_x(shape, dy, weights, dx);
  for (const GroupPiece& piece : pieces_of(shape)) {
    const at::Tensor own
      = view(weights[piece.first], {piece.count, shape.out, shape.in},
             {{step, shape.in, 1}})
          .to(at::kBFloat16);
    view(dx.data + piece.begin * dx.stride, {piece.rows, shape.in},
         {{dx.stride, 1}})
      .copy_(
        at::_grouped_mm(view(dy.data + piece.begin * dy.row_stride,
                             {piece.rows, shape.out}, {{dy.row_stride, 1}}),
                        own, cached(ends_of(shape, piece))));
  }
}

void AtenBackend::grouped_grad_w(const GroupedShape& shape,
                                 const ConstTypedMatrix& dy,
                                 const ConstTypedMatrix& x,
                                 GroupedGrads grads) {
  const std::vector<ConstTypedPtr> targets(grads.begin(), grads.end());
  const std::int64_t step = step_of(shape, targets);
  if (!options_.grouped_products || step == 0 || !takes_rows(shape, dy, x))
    return Backend::grouped_grad_w(shape, dy, x, grads);
  for (const GroupPiece& piece : pieces_of(shape)) {
    const at::Tensor d_y = view(dy.data + piece.begin * dy.row_stride,
                                {piece.rows, shape.out}, {{dy.row_stride, 1}});
    view(grads[piece.first], {piece.count, shape.out, shape.in},
         {{step, shape.in, 1}})
      .add_(at::_grouped_mm(d_y.t(),
                            view(x.data + piece.begin * x.row_stride,
                                 {piece.rows, shape.in}, {{x.row_stride, 1}}),
                            cached(ends_of(shape, piece))));
  }
}

} // namespace troupe::models
