// One token that enters the stack of generation, as kernels read it.
#pragma once

#include "models/kernels/token_draw.hpp"

#include <cstdint>

namespace troupe::models {

struct DecodeToken {
  std::int32_t id = 0; ///< or `drawn_in`
  std::int32_t slot = 0;
  std::int32_t position = 0; ///< in its sequence; earlier tokens are cached
};

/// Returns what stands for a token that the host does not know yet: the one of
/// a row of the draw before.
constexpr std::int32_t drawn_in(std::int64_t row) {
  return static_cast<std::int32_t>(-1 - row);
}

/// Returns the id of a token, which may be in the draw before; negative if that
/// found none.
constexpr std::int32_t known_id(const DecodeToken& token,
                                const DrawnToken* drawn_N) {
  return token.id >= 0 ? token.id : drawn_N[-1 - token.id].id;
}

} // namespace troupe::models
