// Calls that a member made without meeting the others: a digest of all of them,
// and the latest ones, so that members which meet later find out whether they
// made the same calls, and which ones differ.
#pragma once

#include "net/collectives/collectives.hpp"
#include "net/collectives/group_control.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe::net {

class CallLog {
public:
  void add(const CallMark& mark);
  /// Returns whether there were calls since the last comparison.
  bool has_new() const {
    return count_ != compared_;
  }
  /// Meets the members of the group; ends it and throws FailureError unless all
  /// have made the same calls. `who`: this member, for messages.
  void compare(Collectives& group, const std::string& who);

private:
  static constexpr std::size_t num_kept = 64;
  using Latest = std::array<CallMark, num_kept>;

  std::string difference(Collectives& group) const;

  std::uint64_t count_ = 0;
  std::uint64_t compared_ = 0; ///< calls so far at the last comparison
  std::uint64_t digest_ = 0;
  Latest latest_{}; ///< by number, modulo their count
};

} // namespace troupe::net
