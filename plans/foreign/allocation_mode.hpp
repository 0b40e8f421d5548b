// AReaL's allocation in one line: `sglang:d4t2+fsdp:d8`, `vllm:d4+d4p1t1`,
// `sglang[rollout]:d8|fsdp[actor]:d8`.
#pragma once

#include "config/base/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::plans {

/// Degrees of one side of an allocation.
struct AllocationDegrees {
  std::string backend = {}; ///< sglang, vllm, fsdp, megatron; "": not said
  std::uint32_t dp = 1;
  std::uint32_t tp = 1;
  std::uint32_t pp = 1;
  std::uint32_t others = 1; ///< of context, expert: not in our strategies

  std::uint32_t num_devices() const {
    return dp * tp * pp;
  }
};

struct Allocation {
  AllocationDegrees generation = {};
  AllocationDegrees training = {};
  bool colocated = false; ///< on the same devices, in turn
};

/// Throws ConfigError at `place` for any other text.
Allocation parse_allocation(std::string_view text, const Place& place);

} // namespace troupe::plans
