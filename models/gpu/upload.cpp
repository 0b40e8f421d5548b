#include "models/gpu/upload.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

namespace {

constexpr std::size_t most_queued_bytes = std::size_t{4} << 20;

/// Returns the numbers in memory that a device copies from by itself; on the
/// CPU they are where they were.
at::Tensor staged(std::span<const std::byte> bytes, at::ScalarType type,
                  at::Device device) {
  const auto count = bytes.size() / c10::elementSize(type);
  const at::Tensor numbers
    = at::from_blob(const_cast<std::byte*>(bytes.data()),
                    {static_cast<std::int64_t>(count)}, type);
  return device.is_cuda() ? numbers.pin_memory() : numbers;
}

} // namespace

// libtorch uses the page-locked memory again once the stream has copied it.
at::Tensor upload(std::span<const std::byte> bytes, at::ScalarType type,
                  at::Device device) {
  return staged(bytes, type, device)
    .to(device, /*non_blocking=*/true, /*copy=*/true);
}

void upload_to(const at::Tensor& to, std::span<const std::byte> bytes) {
  const bool waits = bytes.size() > most_queued_bytes;
  to.copy_(staged(bytes, at::kByte, waits ? at::Device(at::kCPU) : to.device()),
           /*non_blocking=*/!waits);
}

} // namespace troupe::models
