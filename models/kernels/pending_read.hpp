// Numbers of a device on their way to the host. The host may launch further
// kernels before it reads them, and then waits for this copy, not for those
// kernels: so a device has its next work before the host has seen the last
// result.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace troupe::models {

class PendingRead {
public:
  virtual ~PendingRead() = default;
  /// Waits until the numbers have arrived; they are valid as long as this.
  virtual std::span<const std::byte> bytes() = 0;
};

/// Numbers that are there.
class ArrivedNumbers final : public PendingRead {
public:
  explicit ArrivedNumbers(std::span<const std::byte> bytes)
    : bytes_(bytes.begin(), bytes.end()) {}

  std::span<const std::byte> bytes() override {
    return bytes_;
  }

private:
  std::vector<std::byte> bytes_;
};

} // namespace troupe::models
