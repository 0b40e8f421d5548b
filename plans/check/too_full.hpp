// Devices that would need more memory than they have, as mistakes of a plan:
// devices with the same text are one mistake.
#pragma once

#include "plans/check/plan_check.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::plans::internal {

class TooFull {
public:
  explicit TooFull(std::uint64_t limit) : limit_(limit) {}

  /// Adds the device if its peak is above the limit; `hint` is what to try.
  void add(const DevicePeak& peak, std::string hint);
  std::vector<PlanMistake> mistakes() const;

private:
  struct Group {
    std::string path = {};
    std::string got = {};
    std::string hint = {};
    std::vector<Rank> devices = {};
  };
  std::uint64_t limit_;
  std::vector<Group> groups_;
};

} // namespace troupe::plans::internal
