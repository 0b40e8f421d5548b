// Numbers of the host for a device's kernels: tables of tokens, targets, runs.
// They are copied through page-locked memory in the order of the thread's
// stream, so that the host does not wait until the device has caught up, and
// may change them after the call. Not for captured passes, which would repeat
// the copy from memory that is used again.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

namespace troupe::models {

/// Returns the numbers on the device.
at::Tensor upload(std::span<const std::byte> bytes, at::ScalarType type,
                  at::Device device);

/// Copies bytes to `to`, bytes of a device. Waits if they are many: those are
/// not worth page-locked memory of their size.
void upload_to(const at::Tensor& to, std::span<const std::byte> bytes);

} // namespace troupe::models
