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

/// Returns "12.34 GB".
std::string gigabytes(std::uint64_t bytes);

class TooFull {
public:
  /// Adds the device if its peak is above `limit`. `hint` returns what to try;
  /// it is slow, and called once for devices that hold and have the same.
  void add(const DeviceMemory& memory, const DevicePeak& peak,
           std::uint64_t limit, const std::function<std::string()>& hint);
  std::vector<PlanMistake> mistakes() const;

private:
  struct Group {
    std::string path = {};
    std::string got = {};
    std::string hint = {};
    std::uint64_t limit = 0;
    std::vector<std::string> kinds = {}; ///< of nodes, where they differ
    std::vector<Rank> devices = {};
  };
  /// The memory of a device, and its group.
  struct Seen {
    DeviceMemory memory = {};
    std::size_t group = 0;
  };
  std::size_t group_of(const DevicePeak& peak, std::uint64_t limit,
                       std::string hint);

  std::vector<Group> groups_;
  std::vector<Seen> seen_;
};

} // namespace troupe::plans::internal
