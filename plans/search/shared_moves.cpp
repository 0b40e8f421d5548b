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

} // namespace

double own_move_s(const SearchSpace& space, std::uint32_t call,
                  const SpacePoint& point) {
  if (an_earlier_call_pays(space, call, point))
    return 0;
  const auto home = static_cast<std::size_t>(space.calls()[call].home);
  return space.move_s(call, point.options[call], point.positions[call],
                      point.options[home], point.positions[home]);
}

double least_own_move_s(const SearchSpace& space, std::uint32_t call,
                        const SpacePoint& point) {
  if (an_earlier_call_pays(space, call, point))
    return 0;
  const auto home = static_cast<std::size_t>(space.calls()[call].home);
  return space.least_move_s(call, point.options[call], point.positions[call],
                            point.options[home], point.positions[home]);
}

} // namespace troupe::plans::internal
