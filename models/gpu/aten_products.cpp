// Matrix products of aten_backend.hpp.
#include "models/gpu/aten_backend.hpp"
#include "models/kernels/typed_tensor.hpp"

#include <ATen/ATen.h>

#include <vector>

namespace troupe::models {

namespace {

/// A weight [out, in] on the device: the model's own, or several in one.
class AtenWeight final : public PreparedWeight {
public:
  /// Keeps a weight; `copied_bytes` is its size if it is not a view of the
  /// plane.
  AtenWeight(at::Tensor weight, DType of_products, std::size_t copied_bytes)
    : weight_OI(std::move(weight)),
      operands(of_products),
      is_view_(copied_bytes == 0) {
    charge.set(copied_bytes);
  }
  std::int64_t in() const override {
    return weight_OI.size(1);
  }
  std::int64_t out() const override {
    return weight_OI.size(0);
  }
  const void* place() const override {
    return weight_OI.const_data_ptr();
  }
  bool is_view() const override {
    return is_view_;
  }

  const at::Tensor weight_OI; ///< in bf16 if products are
  const DType operands;
  net::MemoryCharge charge;

private:
  bool is_view_;
};

/// Returns the old weight if it has the shape and the type, else a new one.
std::unique_ptr<AtenWeight> aten_room(std::unique_ptr<PreparedWeight> old,
                                      at::IntArrayRef sizes, DType operands,
                                      const at::TensorOptions& options) {
  auto* known = static_cast<AtenWeight*>(old.get());
  if (known != nullptr && !known->is_view() && known->operands == operands
      && known->weight_OI.sizes() == sizes
      && known->weight_OI.dtype() == options.dtype()) {
    old.release();
    return std::unique_ptr<AtenWeight>(known);
  }
  old.reset(); // frees its memory first
  at::Tensor weight = at::empty(sizes, options);
  const auto bytes = weight.nbytes();
  return std::make_unique<AtenWeight>(std::move(weight), operands, bytes);
}

/// Computes c (+)= a b in one operation, summed in fp32: a gradient of a head
/// is as large as the head. GPUs have bf16 products with fp32 sums, the CPU
/// does not.
void aten_bf16_product(const at::Tensor& a, const at::Tensor& b,
                       bool accumulates, at::Tensor& c) {
  if (c.scalar_type() == at::kBFloat16)
    accumulates ? c.addmm_(a, b) : at::mm_out(c, a, b);
  else if (accumulates)
    at::addmm_out(c, c, a, b, at::kFloat);
  else
    at::mm_out(c, a, b, at::kFloat);
}

void aten_product(const at::Tensor& a, const at::Tensor& b,
                  const GemmOptions& options, at::Tensor& c) {
  const bool rounds = options.operands == DType::bf16;
  const at::Tensor own_a = rounds ? a.to(at::kBFloat16) : a;
  const at::Tensor own_b = rounds ? b.to(at::kBFloat16) : b;
  const bool all_bf16 = rounds && c.scalar_type() == at::kBFloat16;
  if (all_bf16 || (rounds && c.is_cuda()))
    return aten_bf16_product(own_a, own_b, options.accumulate, c);
  const at::Tensor wide_a = own_a.to(at::kFloat);
  const at::Tensor wide_b = own_b.to(at::kFloat);
  if (c.scalar_type() == at::kFloat)
    options.accumulate ? c.addmm_(wide_a, wide_b)
                       : at::mm_out(c, wide_a, wide_b);
  else if (options.accumulate)
    c.copy_(at::addmm(c.to(at::kFloat), wide_a, wide_b));
  else
    c.copy_(at::mm(wide_a, wide_b));
}

/// Computes c (+)= a b + bias.
void aten_multiply(const at::Tensor& a, const at::Tensor& b,
                   const at::Tensor& bias, const GemmOptions& options,
                   at::Tensor c) {
  aten_product(a, b, options, c);
  if (bias.defined())
    c.add_(bias);
}

} // namespace

void AtenBackend::gemm(const GemmShape& shape, const ConstTypedMatrix& a,
                       const ConstTypedMatrix& b, const TypedMatrix& c,
                       const GemmOptions& options) {
  aten_multiply(
    view(a.data, {shape.m, shape.k}, {{a.row_stride, a.col_stride}}),
    view(b.data, {shape.k, shape.n}, {{b.row_stride, b.col_stride}}),
    options.bias != nullptr ? view(options.bias, {shape.n}) : at::Tensor{},
    options, view(c.data, {shape.m, shape.n}, {{c.stride, 1}}));
}

std::unique_ptr<PreparedWeight>
AtenBackend::prepare(std::span<const at::Tensor> parts, DType operands,
                     std::unique_ptr<PreparedWeight> old) {
  std::vector<at::Tensor> own;
  std::int64_t out = 0;
  for (const at::Tensor& part : parts) {
    own.push_back(view(numbers_of(part), part.sizes()));
    out += part.size(0);
  }
  const bool is_rounded = own.front().scalar_type() == at::kBFloat16;
  if (own.size() == 1 && (is_rounded || operands != DType::bf16))
    return std::make_unique<AtenWeight>(own.front(), operands, 0);
  auto packed = aten_room(
    std::move(old), {out, own.front().size(1)}, operands,
    own.front().options().dtype(
      is_rounded || operands == DType::bf16 ? at::kBFloat16 : at::kFloat));
  std::int64_t row = 0;
  for (const at::Tensor& part : own) {
    packed->weight_OI.narrow(0, row, part.size(0)).copy_(part);
    row += part.size(0);
  }
  return packed;
}

void AtenBackend::product(std::int64_t rows, ConstTypedPtr x,
                          const PreparedWeight& weight, const TypedMatrix& y,
                          const GemmOptions& options) {
  const auto& prepared = static_cast<const AtenWeight&>(weight);
  GemmOptions own = options;
  own.operands = prepared.operands;
  aten_multiply(view(x, {rows, weight.in()}), prepared.weight_OI.t(),
                options.bias != nullptr ? view(options.bias, {weight.out()})
                                        : at::Tensor{},
                own, view(y.data, {rows, weight.out()}, {{y.stride, 1}}));
}

} // namespace troupe::models
