// The tokens of a pass of generation that are alone of their sequence: one
// kernel attends with all of them.
#pragma once

#include "models/kernels/decode_attention.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::models {

struct SingleRows {
  std::vector<std::int64_t> rows; ///< of the pass
  std::int64_t keys = 1;          ///< that any of them sees, at most
  bool are_all = false;           ///< rows of the pass

  explicit SingleRows(std::span<const DecodeGroup> groups) {
    for (const DecodeGroup& group : groups) {
      if (group.tokens != 1)
        continue;
      rows.push_back(static_cast<std::int64_t>(group.first));
      keys = std::max(keys, group.keys);
    }
    are_all = rows.size() == groups.size();
  }
};

} // namespace troupe::models
