// Costs of ATen operations on a GPU, by their names, for aten_counter.hpp:
// which ones launch a kernel, and what that reads and writes of its tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace troupe::testing {

enum class AtenCost : std::uint8_t {
  none,     ///< a view, an allocation
  parts,    ///< other operations
  kernel,   ///< one launch over all its tensors
  groups,   ///< one launch that prepares another over all its tensors
  picks,    ///< one launch that reads as much as it returns, and an index
  places,   ///< one launch that writes as much as it gets, and reads an index
  download, ///< a copy to the host
};

/// Returns the cost; none if the operation is in no list. `name` is without
/// "aten::" and the underscore of operations in place.
std::optional<AtenCost> aten_cost(std::string_view name);

} // namespace troupe::testing
