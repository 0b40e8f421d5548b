#include "models/gpu/device_tables.hpp"

#include "models/gpu/upload.hpp"

#include <algorithm>
#include <utility>

namespace troupe::models {

namespace {

/// Those of a pass, and those of a layer with experts, forward or backward.
constexpr std::size_t most_tables = 16;

} // namespace

at::Tensor DeviceTables::of(std::span<const std::byte> bytes,
                            at::ScalarType type, at::Device device) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find_if(last_, [&](const Table& table) {
    return table.on_device.scalar_type() == type
           && std::ranges::equal(table.bytes, bytes);
  });
  if (known != last_.end()) {
    std::rotate(known, known + 1, last_.end());
    return last_.back().on_device;
  }
  if (last_.size() == most_tables)
    last_.erase(last_.begin());
  Table table{{bytes.begin(), bytes.end()}, upload(bytes, type, device)};
  return last_.emplace_back(std::move(table)).on_device;
}

} // namespace troupe::models
