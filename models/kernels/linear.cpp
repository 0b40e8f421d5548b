#include "models/kernels/linear.hpp"

#include "models/kernels/typed_tensor.hpp"

namespace troupe::models {

void linear(Backend& backend, ProductRows rows, ConstRowsView x,
            const at::Tensor& weight, const at::Tensor& bias, RowsView y,
            bool accumulate) {
  const std::int64_t out = weight.size(0);
  const std::int64_t in = weight.size(1);
  const float* bias_data
    = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  backend.gemm({rows.count, out, in}, {x.data, x.stride, 1},
               {numbers_of(weight), 1, in}, {y.data, y.stride},
               {accumulate, bias_data, rows.operands});
}

void linear_grad_input(Backend& backend, ProductRows rows, ConstRowsView dy,
                       const at::Tensor& weight, RowsView dx, bool accumulate) {
  const std::int64_t out = weight.size(0);
  const std::int64_t in = weight.size(1);
  backend.gemm({rows.count, in, out}, {dy.data, dy.stride, 1},
               {numbers_of(weight), in, 1}, {dx.data, dx.stride},
               {accumulate, nullptr, rows.operands});
}

void linear_grad_weight(Backend& backend, ProductRows rows, ConstRowsView dy,
                        ConstRowsView x, const at::Tensor& d_weight) {
  if (!d_weight.defined())
    return;
  const std::int64_t out = d_weight.size(0);
  const std::int64_t in = d_weight.size(1);
  backend.gemm({out, in, rows.count}, {dy.data, 1, dy.stride},
               {x.data, x.stride, 1}, {d_weight.mutable_data_ptr<float>(), in},
               {true, nullptr, rows.operands});
}

} // namespace troupe::models
