// Devices that would need more memory than they have, as mistakes of a plan:
// devices with the same text are one mistake.
#pragma once

#include "plans/check/plan_check.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe::plans::internal {

class TooFull {
public:
  explicit TooFull(std::uint64_t limit) : limit_(limit) {}

  /// Adds the device if its peak is above the limit. `hint` returns what to
  /// try; it is slow, and called once for devices that hold the same.
  void add(const DeviceMemory& memory, const DevicePeak& peak,
           const std::function<std::string()>& hint);
  std::vector<PlanMistake> mistakes() const;

private:
  struct Group {
    std::string path = {};
    std::string got = {};
    std::string hint = {};
    std::vector<Rank> devices = {};
  };
  /// The memory of a device, and its group.
  struct Seen {
    DeviceMemory memory = {};
    std::size_t group = 0;
  };
  std::size_t group_of(const DevicePeak& peak, std::string hint);

  std::uint64_t limit_;
  std::vector<Group> groups_;
  std::vector<Seen> seen_;
};

} // namespace troupe::plans::internal
