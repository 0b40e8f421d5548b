#include "plans/search/kind_walk.hpp"

#include "plans/search/plan_point.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace troupe::plans {

namespace {

constexpr std::size_t most_descents = 6;

/// Kinds of nodes by kind of call: generation, inference, training.
using KindsOfCalls = std::array<KindSet, 3>;

std::size_t index_of(CallKind kind) {
  switch (kind) {
  case CallKind::generate:
    return 0;
  case CallKind::train:
    return 2;
  default:
    return 1;
  }
}

std::vector<KindsOfCalls> ways_to_give_kinds(const SearchSpace& space) {
  std::set<KindSet> sets;
  for (const auto& call : space.calls())
    for (const auto& option : call.options)
      sets.insert(option.kinds);
  std::vector<KindsOfCalls> ways;
  for (const auto generation : sets)
    for (const auto inference : sets)
      for (const auto training : sets)
        ways.push_back({generation, inference, training});
  return ways;
}

/// Returns every call at its fastest on its kinds of nodes; nullopt if there is
/// a call that does not fit them.
std::optional<SpacePoint> fastest_on(const SearchSpace& space,
                                     const KindsOfCalls& kinds) {
  SpacePoint point;
  for (const auto& call : space.calls()) {
    const auto set = kinds[index_of(call.call->kind)];
    const auto found
      = std::ranges::find_if(call.options, [&](const CallOption& option) {
          return option.kinds == set && option.chunks == 1;
        });
    if (found == call.options.end())
      return std::nullopt;
    point.options.push_back(
      static_cast<std::uint32_t>(found - call.options.begin()));
    point.positions.push_back(space.align(0, *found));
  }
  return point;
}

} // namespace

void simulate_plans(const std::vector<FoundPlan>& plans,
                    const SearchSpace& space, PointCost& cost,
                    const Walk& walk) {
  for (const auto& found : plans) {
    auto point = internal::point_of(space, found.plan);
    if (!point)
      continue;
    walk.fill_rooms(*point);
    cost.step_s(*point);
  }
}

void walk_from_kinds(const SearchSpace& space, PointCost& cost, Walk& walk) {
  auto known = cost.best();
  std::vector<std::pair<double, SpacePoint>> starts;
  for (const auto& kinds : ways_to_give_kinds(space)) {
    auto point = fastest_on(space, kinds);
    if (!point || !walk.shrink(*point))
      continue;
    const auto step_s = cost.step_s(*point);
    starts.emplace_back(step_s, std::move(*point));
  }
  std::ranges::stable_sort(starts, {},
                           [](const auto& start) { return start.first; });
  for (std::size_t i = 0; i < std::min(most_descents, starts.size()); ++i)
    if (!walk.ended())
      walk.descend(starts[i].second);
  for (auto& start : known)
    if (!walk.ended())
      walk.descend(start.point);
}

} // namespace troupe::plans
