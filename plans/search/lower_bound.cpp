#include "plans/search/lower_bound.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace troupe::plans {

namespace {

struct LeastOfCall {
  double seconds = std::numeric_limits<double>::infinity(); ///< on the path
  double core_s = std::numeric_limits<double>::infinity();
};

LeastOfCall least_of(const SearchSpace::SpaceCall& call) {
  LeastOfCall least;
  const bool adds_all = call.call->kind != CallKind::inference;
  for (const auto& option : call.options) {
    least.seconds
      = std::min(least.seconds, adds_all ? option.total_s() : option.seconds);
    least.core_s = std::min(least.core_s, option.device_s * option.cores);
  }
  return least;
}

} // namespace

double least_step_s(const SearchSpace& space, std::uint32_t max_lag) {
  const auto& workflow = space.problem().workflow;
  std::vector<double> path_s(workflow.calls.size(), 0);
  double core_s = 0, longest_s = 0;
  std::size_t number = 0;
  for (std::size_t i = 0; i < workflow.calls.size(); ++i) {
    for (const auto producer : producers(workflow, i))
      path_s[i] = std::max(path_s[i], path_s[producer]);
    if (workflow.calls[i].kind == CallKind::function)
      continue;
    const auto least = least_of(space.calls()[number++]);
    path_s[i] += least.seconds;
    core_s += least.core_s;
    longest_s = std::max(longest_s, path_s[i]);
  }
  return std::max(longest_s / (1 + max_lag), core_s / space.num_cores());
}

} // namespace troupe::plans
