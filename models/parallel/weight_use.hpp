// Who reads and changes the weights of an engine: how they are stored and in
// which memory follows from it.
#pragma once

#include <cstdint>

namespace troupe::models {

/// The use of an engine's weights by others.
enum class WeightUse : std::uint8_t {
  shared, ///< other devices read their plane
  moved,  ///< moves bring them; nobody else reads them
  frozen, ///< only kernels read them, and nothing changes them: no masters
};

} // namespace troupe::models
