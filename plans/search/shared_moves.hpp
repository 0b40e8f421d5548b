// Moves that calls share: those of one replica wait for the same move, which
// counts for the first of them only.
#pragma once

#include "plans/search/search_space.hpp"

#include <cstdint>

namespace troupe::plans::internal {

/// Returns the seconds of the move before `call`, whose home is chosen; 0 where
/// an earlier call pays for it or no move is needed.
double own_move_s(const SearchSpace& space, std::uint32_t call,
                  const SpacePoint& point);
/// Returns at most the same, without working the move out.
double least_own_move_s(const SearchSpace& space, std::uint32_t call,
                        const SpacePoint& point);

} // namespace troupe::plans::internal
