// The last tables of the host that a device has: positions of tokens, starts of
// sequences. All layers of a pass use the same ones, forward and backward, and
// each copy from the host stops it until the device has caught up. Not for
// captured passes, which would keep a table that is replaced.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace troupe::models {

class DeviceTables {
public:
  /// Returns the numbers on the device; copies them if they are not among the
  /// last ones. Thread-safe; one device per object.
  at::Tensor of(std::span<const std::int32_t> values, at::Device device);

private:
  struct Table {
    std::vector<std::int32_t> values;
    at::Tensor on_device;
  };

  std::mutex mutex_;
  std::vector<Table> last_; ///< most recently used last
};

} // namespace troupe::models
