// Devices that would need more memory than they have, as mistakes of a plan:
// those of which the same is to be said are one mistake.
#pragma once

#include "plans/plan_check.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::plans::internal {

class TooFull {
public:
  explicit TooFull(std::uint64_t limit) : limit_(limit) {}

  /// Counts the device if its peak is above the limit; `hint` says what to try.
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
