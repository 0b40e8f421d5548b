// Memory, elementwise kernels and activations.
#include "models/gpu/aten_backend.hpp"

#include "config/base/error.hpp"
#include "models/gpu/aten_parts.hpp"
#include "models/gpu/kernels/gated_unit.hpp"
#include "models/gpu/kernels/rotation.hpp"
#include "models/gpu/own_kernels.hpp"
#include "models/gpu/stored_type.hpp"
#include "models/gpu/upload.hpp"
#include "models/kernels/typed_tensor.hpp"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <vector>

namespace troupe::models {

at::Tensor aten_weight(const at::Tensor& weight, NormKind kind) {
  return kind == NormKind::rms_one_plus ? weight + 1 : weight;
}

void AtenBackend::enter() {
  if (!device_.is_cpu())
    c10::impl::getDeviceGuardImpl(device_.type())->setDevice(device_);
}

// For the thread's stream alone: waiting for the device would break the capture
// of another backend on it.
void AtenBackend::wait() {
  if (device_.is_cpu())
    return;
  c10::Event done(device_.type());
  done.record(
    c10::impl::getDeviceGuardImpl(device_.type())->getStream(device_));
  done.synchronize();
}

void AtenBackend::write(const void* from, void* to, std::size_t size_bytes) {
  upload_to(at::for_blob(to, {static_cast<std::int64_t>(size_bytes)})
              .options(at::TensorOptions(at::kByte).device(device_))
              .target_device(device_)
              .make_tensor(),
            {static_cast<const std::byte*>(from), size_bytes});
}

std::unique_ptr<GraphRecorder> AtenBackend::recorder() {
  return options_.new_recorder == nullptr ? nullptr
                                          : options_.new_recorder(device_);
}

void AtenBackend::fill(TypedPtr x, std::int64_t count, float value) {
  view(x, {count}).fill_(value);
}

void AtenBackend::copy(ConstTypedPtr from, TypedPtr to, std::int64_t count) {
  if (from != to)
    view(to, {count}).copy_(view(from, {count}));
}

void AtenBackend::copy_box(const BoxCopy& box, ConstTypedPtr from,
                           TypedPtr to) {
  const auto strides = [](const std::array<std::int64_t, 3>& given) {
    return std::array<std::int64_t, 4>{given[0], given[1], given[2], 1};
  };
  view(to, box.sizes, strides(box.to_strides))
    .copy_(view(from, box.sizes, strides(box.from_strides)));
}

void AtenBackend::add(ConstTypedPtr a, ConstTypedPtr b, TypedPtr to,
                      std::int64_t count) {
  at::Tensor sum = view(to, {count});
  const bool in_fp32 = to.type() == DType::f32; // libtorch rounds sums of bf16
  at::add_out(sum, in_fp32 ? wide(a, {count}) : view(a, {count}),
              view(b, {count}));
}

// The CPU would round the factor to the type of x.
void AtenBackend::scale(TypedPtr x, std::int64_t count, float factor) {
  const at::Tensor stored = view(x, {count});
  const at::Tensor scaled = stored.to(at::kFloat).mul_(factor);
  if (x.type() != DType::f32)
    stored.copy_(scaled);
}

at::Tensor aten_turned(const AtenViews& on, const at::Tensor& heads_TND,
                       const RopeTable& table, const at::Tensor& positions_T,
                       bool backwards) {
  const std::int64_t half = table.num_frequencies();
  const auto rows = [&](const float* values) {
    return on.view(values, {table.positions(), half})
      .index_select(0, positions_T)
      .unsqueeze(1);
  };
  const at::Tensor cos = rows(table.cos(0));
  const at::Tensor sin = rows(table.sin(0));
  const double sign = backwards ? -1 : 1;
  const at::Tensor low = heads_TND.narrow(2, 0, half);
  const at::Tensor high = heads_TND.narrow(2, half, half);
  at::Tensor turned = at::empty_like(heads_TND);
  at::Tensor to_low = turned.narrow(2, 0, half);
  at::Tensor to_high = turned.narrow(2, half, half);
  at::mul_out(to_low, low, cos).addcmul_(high, sin, -sign);
  at::mul_out(to_high, high, cos).addcmul_(low, sin, sign);
  const std::int64_t rest = heads_TND.size(2) - 2 * half;
  if (rest > 0)
    turned.narrow(2, 2 * half, rest).copy_(heads_TND.narrow(2, 2 * half, rest));
  return turned;
}

void AtenBackend::rope(const RopeShape& shape, const RopeTable& table,
                       std::span<const std::int32_t> positions_T, TypedPtr x,
                       bool backwards) {
  if (options_.own_kernels)
    return gpu::with_stored(x.type(), [&](auto as) {
      using Kernel = gpu::Rotate<typename decltype(as)::type>;
      const at::Tensor positions = cached(positions_T);
      gpu::run_kernel(
        device_,
        Kernel{shape, gpu::Rotation::of(table),
               positions.const_data_ptr<std::int32_t>(), as.at(x), backwards},
        Kernel::blocks(shape.rows),
        {"rotate", 2 * shape.rows * shape.heads * shape.head_dim
                     * static_cast<std::int64_t>(size_bytes(x.type()))});
    });
  at::Tensor heads = view(x, {shape.rows, shape.heads, shape.head_dim},
                          {{shape.stride, shape.head_dim, 1}});
  heads.copy_(aten_turned(*this, heads.to(at::kFloat), table,
                          cached(positions_T), backwards));
}

namespace {

const char* aten_approximation(Activation activation) {
  return activation == Activation::gelu ? "none" : "tanh";
}

void aten_activate(at::Tensor& to, const at::Tensor& x, Activation activation) {
  if (activation == Activation::silu)
    at::silu_out(to, x);
  else
    at::gelu_out(to, x, aten_approximation(activation));
}

/// Returns the bytes of a unit's tensors, each read or written so often.
std::int64_t unit_bytes(const MlpShape& shape, DType type, std::int64_t times) {
  return times * shape.rows * (shape.columns() + shape.width)
         * static_cast<std::int64_t>(size_bytes(type));
}

/// Returns a tensor for a result in fp32: the target itself if that is fp32.
at::Tensor aten_unrounded(const at::Tensor& target) {
  return target.scalar_type() == at::kFloat
           ? target
           : at::empty(target.sizes(), target.options().dtype(at::kFloat));
}

/// Stores a result of `aten_unrounded`.
void aten_store(const at::Tensor& result, const at::Tensor& target) {
  if (target.scalar_type() != at::kFloat)
    target.copy_(result);
}

/// Turns x into the gradient of the activation's input.
void aten_activate_backward(at::Tensor& x, const at::Tensor& d,
                            Activation activation) {
  if (activation == Activation::silu)
    at::silu_backward_out(x, d, x);
  else
    at::gelu_backward_out(x, d, x, aten_approximation(activation));
}

} // namespace

void AtenBackend::mlp_unit(const MlpShape& shape, ConstTypedPtr in,
                           TypedPtr act) {
  if (options_.own_kernels)
    return gpu::with_stored(in.type(), [&](auto as) {
      gpu::with_unit(shape.activation, [&](auto unit) {
        using Kernel
          = gpu::GatedUnit<decltype(unit), typename decltype(as)::type>;
        gpu::run_kernel(device_,
                        Kernel{as.at(in), as.at(act), shape.width, shape.gated},
                        Kernel::blocks(shape.rows, shape.width),
                        {"gated_unit", unit_bytes(shape, in.type(), 1)});
      });
    });
  const at::Tensor x = wide(in, {shape.rows, shape.columns()});
  const at::Tensor target = view(act, {shape.rows, shape.width});
  at::Tensor unit = aten_unrounded(target);
  aten_activate(unit, x.narrow(1, 0, shape.width), shape.activation);
  if (shape.gated)
    unit.mul_(x.narrow(1, shape.width, shape.width));
  aten_store(unit, target);
}

void AtenBackend::mlp_unit_backward(const MlpShape& shape, TypedPtr in,
                                    TypedPtr d_act) {
  if (options_.own_kernels)
    return gpu::with_stored(in.type(), [&](auto as) {
      gpu::with_unit(shape.activation, [&](auto unit) {
        using Kernel
          = gpu::GatedUnitBackward<decltype(unit), typename decltype(as)::type>;
        gpu::run_kernel(
          device_, Kernel{as.at(in), as.at(d_act), shape.width, shape.gated},
          Kernel::blocks(shape.rows, shape.width),
          {"gated_unit_backward", unit_bytes(shape, in.type(), 2)});
      });
    });
  const at::Tensor stored = view(in, {shape.rows, shape.columns()});
  const at::Tensor x = stored.to(at::kFloat);
  at::Tensor first = x.narrow(1, 0, shape.width);
  at::Tensor act = view(d_act, {shape.rows, shape.width});
  at::Tensor value
    = at::empty({shape.rows, shape.width}, act.options().dtype(at::kFloat));
  aten_activate(value, first, shape.activation);
  if (!shape.gated) {
    aten_activate_backward(first, act.to(at::kFloat), shape.activation);
    aten_store(x, stored);
    act.copy_(value);
    return;
  }
  at::Tensor up = x.narrow(1, shape.width, shape.width);
  aten_activate_backward(first, act * up, shape.activation);
  const at::Tensor d_up = act * value;
  at::mul_out(act, value, up);
  up.copy_(d_up);
  aten_store(x, stored);
}

} // namespace troupe::models
