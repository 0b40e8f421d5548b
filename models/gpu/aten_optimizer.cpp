// The optimizer of aten_backend.hpp.
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/kernels/adamw_step.hpp"
#include "models/gpu/kernels/squared_norm.hpp"
#include "models/gpu/own_kernels.hpp"
#include "models/gpu/upload.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace troupe::models {

namespace {

/// Elements of one operation: libtorch holds several temporaries of its size,
/// which no plan counts. Long enough to be worth a launch.
constexpr std::int64_t aten_piece = std::int64_t{1} << 22;

/// Returns the runs in pieces.
std::vector<OptimizerRun> aten_pieces(std::span<const OptimizerRun> runs) {
  std::vector<OptimizerRun> pieces;
  for (OptimizerRun rest : runs)
    while (rest.begin < rest.end) {
      OptimizerRun& piece = pieces.emplace_back(rest);
      piece.end = std::min(rest.end, rest.begin + aten_piece);
      rest.moment += piece.end - rest.begin;
      rest.begin = piece.end;
    }
  return pieces;
}

/// Joins adjacent runs of one kind: operations are few and long.
std::vector<OptimizerRun> aten_joined(std::span<const OptimizerRun> runs) {
  std::vector<OptimizerRun> joined;
  for (const OptimizerRun& run : runs) {
    if (!joined.empty()) {
      OptimizerRun& last = joined.back();
      const bool continues
        = last.end == run.begin
          && last.moment + (last.end - last.begin) == run.moment
          && last.decay == run.decay && last.counted == run.counted;
      if (continues) {
        last.end = run.end;
        continue;
      }
    }
    joined.push_back(run);
  }
  return joined;
}

/// Returns the bytes of one fp32 plane in these runs.
std::int64_t run_bytes(std::span<const OptimizerRun> runs) {
  std::int64_t count = 0;
  for (const OptimizerRun& run : runs)
    count += run.end - run.begin;
  return count * static_cast<std::int64_t>(sizeof(float));
}

/// Runs of the optimizer in a device's memory.
class AtenRuns {
public:
  AtenRuns(std::span<const OptimizerRun> runs, at::Device device)
    : bytes_(upload(std::as_bytes(runs), at::kByte, device)) {}

  const OptimizerRun* data() const {
    return static_cast<const OptimizerRun*>(bytes_.const_data_ptr());
  }

private:
  at::Tensor bytes_;
};

/// Returns the sum by kernels of our own.
double aten_own_squares(const float* grad, std::span<const OptimizerRun> runs,
                        at::Device device) {
  const auto count = static_cast<std::int64_t>(runs.size());
  const AtenRuns on_device(runs, device);
  const at::Tensor sums
    = at::empty({count + 1}, at::TensorOptions(at::kDouble).device(device));
  auto* squares = sums.mutable_data_ptr<double>();
  gpu::run_kernel(device, gpu::RunSquares{grad, on_device.data(), squares},
                  gpu::RunSquares::blocks(count),
                  {"run_squares", run_bytes(runs)});
  gpu::run_kernel(device, gpu::JoinSquares{squares, count, squares + count}, 1,
                  {"join_squares", 8 * count});
  return sums[count].item<double>();
}

} // namespace

double AtenBackend::sum_of_squares(const float* grad,
                                   std::span<const OptimizerRun> runs) {
  if (options_.own_kernels)
    return aten_own_squares(grad, runs, device_);
  at::Tensor sum
    = at::zeros({}, at::TensorOptions(at::kDouble).device(device_));
  for (const OptimizerRun& run : aten_pieces(aten_joined(runs)))
    if (run.counted)
      sum.add_(view(grad + run.begin, {run.end - run.begin})
                 .square()
                 .sum(at::kDouble));
  return sum.item<double>();
}

void AtenBackend::adamw(const AdamNumbers& numbers, const AdamPlanes& planes,
                        std::span<const OptimizerRun> runs) {
  if (options_.own_kernels) {
    const AtenRuns on_device(runs, device_);
    const std::int64_t bytes = run_bytes(runs);
    return gpu::run_kernel(
      device_, gpu::AdamwStep{numbers, planes, on_device.data()},
      gpu::AdamwStep::blocks(static_cast<std::int64_t>(runs.size())),
      {"adamw", 7 * bytes + (planes.rounded == nullptr ? 0 : bytes / 2)});
  }
  for (const OptimizerRun& run : aten_pieces(aten_joined(runs))) {
    const std::int64_t count = run.end - run.begin;
    at::Tensor p = view(planes.weight + run.begin, {count});
    at::Tensor m = view(planes.m + run.moment, {count});
    at::Tensor v = view(planes.v + run.moment, {count});
    const at::Tensor g = view(planes.grad + run.begin, {count}) * numbers.scale;
    m.add_(g - m, 1.0F - numbers.beta1);
    v.mul_(numbers.beta2).addcmul_(g, g, 1.0F - numbers.beta2);
    if (run.decay)
      p.mul_(numbers.keep);
    p.sub_(numbers.step * m / (v.sqrt() * numbers.root + numbers.eps));
    if (planes.rounded != nullptr)
      copy(planes.weight + run.begin,
           TypedPtr{planes.rounded + run.begin, DType::bf16}, count);
  }
}

} // namespace troupe::models
