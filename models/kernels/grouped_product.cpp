#include "models/kernels/grouped_product.hpp"

#include "models/kernels/product_kernels.hpp"

namespace troupe::models {

namespace {

/// Calls visit(group, first row, rows) for all groups that have rows.
template <class Visit>
void each_group(const GroupedShape& shape, const Visit& visit) {
  for (std::size_t g = 0; g < shape.groups(); ++g)
    if (shape.rows_of(g) > 0)
      visit(g, shape.begin_G[g], shape.rows_of(g));
}

} // namespace

void ProductKernels::grouped_product(const GroupedShape& shape,
                                     const ConstTypedMatrix& x,
                                     GroupedWeights weights,
                                     const TypedMatrix& y) {
  each_group(shape, [&](std::size_t g, std::int64_t begin, std::int64_t rows) {
    gemm({rows, shape.out, shape.in},
         {x.data + begin * x.row_stride, x.row_stride, 1},
         {weights[g], 1, shape.in}, {y.data + begin * y.stride, y.stride},
         {false, nullptr, shape.operands});
  });
}

void ProductKernels::grouped_grad_x(const GroupedShape& shape,
                                    const ConstTypedMatrix& dy,
                                    GroupedWeights weights,
                                    const TypedMatrix& dx) {
  const std::int64_t out = shape.out / shape.parts;
  each_group(shape, [&](std::size_t g, std::int64_t begin, std::int64_t rows) {
    for (std::int64_t part = 0; part < shape.parts; ++part)
      gemm({rows, shape.in, out},
           {dy.data + begin * dy.row_stride + part * out, dy.row_stride, 1},
           {weights[g] + part * out * shape.in, shape.in, 1},
           {dx.data + begin * dx.stride, dx.stride},
           {shape.accumulate || part > 0, nullptr, shape.operands});
  });
}

void ProductKernels::grouped_grad_w(const GroupedShape& shape,
                                    const ConstTypedMatrix& dy,
                                    const ConstTypedMatrix& x,
                                    GroupedGrads grads) {
  const std::int64_t out = shape.out / shape.parts;
  each_group(shape, [&](std::size_t g, std::int64_t begin, std::int64_t rows) {
    if (grads[g] == nullptr)
      return;
    for (std::int64_t part = 0; part < shape.parts; ++part)
      gemm({out, shape.in, rows},
           {dy.data + begin * dy.row_stride + part * out, 1, dy.row_stride},
           {x.data + begin * x.row_stride, x.row_stride, 1},
           {grads[g] + part * out * shape.in, shape.in},
           {true, nullptr, shape.operands});
  });
}

} // namespace troupe::models
