// The last tables of the host that a device has: positions of tokens, starts of
// sequences, tokens of experts. All layers of a pass use the same ones, or the
// kernels of one layer do. Not for captured passes, which would keep a table
// that is replaced.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace troupe::models {

class DeviceTables {
public:
  /// Returns the numbers on the device; copies them if they are not among the
  /// last ones. Thread-safe; one device per object.
  at::Tensor of(std::span<const std::int32_t> values, at::Device device) {
    return of(std::as_bytes(values), at::kInt, device);
  }
  at::Tensor of(std::span<const std::int64_t> values, at::Device device) {
    return of(std::as_bytes(values), at::kLong, device);
  }
  at::Tensor of(std::span<const float> values, at::Device device) {
    return of(std::as_bytes(values), at::kFloat, device);
  }

private:
  struct Table {
    std::vector<std::byte> bytes;
    at::Tensor on_device; ///< has the type
  };

  at::Tensor of(std::span<const std::byte> bytes, at::ScalarType type,
                at::Device device);

  std::mutex mutex_;
  std::vector<Table> last_; ///< most recently used last
};

} // namespace troupe::models
