// Costs of moves between options of calls, each asked for once (declared in
// search_space.hpp).
#include "plans/search/search_space.hpp"

namespace troupe::plans {

double SearchSpace::move_s(std::size_t call, std::uint32_t option,
                           std::uint32_t position, std::uint32_t home_option,
                           std::uint32_t home_position) const {
  const auto& one = calls_[call];
  const auto& mine = one.options[option];
  const auto& home = home_of(one).options[home_option];
  if (one.tracked < 0 && shares(mine, position, home, home_position))
    return 0;
  if (!is_mixed()) // else other positions may have other links
    move_left(mine, position, home, home_position);
  const MoveKey key{static_cast<std::uint32_t>(call), mine.mesh, position,
                    home.mesh, home_position};
  const auto [found, added] = moves_s_.try_emplace(key, 0.0);
  const auto& ema = problem_.workflow.role(one.call->role).ema;
  if (added) {
    const auto source = placement(home, home_position);
    auto target = placement(mine, position);
    target.devices = order_devices(source, target, problem_.cluster);
    found->second
      = costs_.move_s(one.call->role, source, target) / (ema ? ema->every : 1);
  }
  return found->second;
}

double SearchSpace::least_move_s(std::size_t call, std::uint32_t option,
                                 std::uint32_t position,
                                 std::uint32_t home_option,
                                 std::uint32_t home_position) const {
  const auto& one = calls_[call];
  const auto& mine = one.options[option];
  const auto& home = home_of(one).options[home_option];
  if (one.tracked < 0 && shares(mine, position, home, home_position))
    return 0;
  const MoveKey key{static_cast<std::uint32_t>(call), mine.mesh, home.mesh};
  const auto [found, added] = least_moves_s_.try_emplace(key, 0.0);
  const auto& ema = problem_.workflow.role(one.call->role).ema;
  if (added)
    found->second
      = costs_.least_move_s(one.call->role, home.strategy, mine.strategy)
        / (ema ? ema->every : 1);
  return found->second;
}

} // namespace troupe::plans
