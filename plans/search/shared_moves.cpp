#include "plans/search/shared_moves.hpp"

namespace troupe::plans::internal {

namespace {

bool an_earlier_call_pays(const SearchSpace& space, std::uint32_t call,
                          const SpacePoint& point) {
  const auto& calls = space.calls();
  const auto option = [&](std::uint32_t i) -> const CallOption& {
    return calls[i].options[point.options[i]];
  };
  for (std::uint32_t i = 0; i < call; ++i)
    if (calls[i].home == calls[call].home && !calls[i].trains
        && point.options[i] != not_chosen
        && point.positions[i] == point.positions[call]
        && option(i).num_devices == option(call).num_devices
        && option(i).strategy == option(call).strategy)
      return true;
  return false;
}

/// Returns the seconds that `move_s` finds, unless an earlier call pays.
template <class MoveSeconds>
double unless_paid(const SearchSpace& space, std::uint32_t call,
                   const SpacePoint& point, MoveSeconds move_s) {
  if (an_earlier_call_pays(space, call, point))
    return 0;
  const auto home = static_cast<std::size_t>(space.calls()[call].home);
  return (space.*move_s)(call, point.options[call], point.positions[call],
                         point.options[home], point.positions[home]);
}

} // namespace

double own_move_s(const SearchSpace& space, std::uint32_t call,
                  const SpacePoint& point) {
  return unless_paid(space, call, point, &SearchSpace::move_s);
}

double least_own_move_s(const SearchSpace& space, std::uint32_t call,
                        const SpacePoint& point) {
  return unless_paid(space, call, point, &SearchSpace::least_move_s);
}

} // namespace troupe::plans::internal
