// One token that enters the stack of generation, as kernels read it.
#pragma once

#include <cstdint>

namespace troupe::models {

struct DecodeToken {
  std::int32_t id = 0;
  std::int32_t slot = 0;
  std::int32_t position = 0; ///< in its sequence; earlier tokens are cached
};

} // namespace troupe::models
