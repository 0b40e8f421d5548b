// Questions about a step graph that is made: versions, and what is done ahead
// of its step.
#include "config/base/error.hpp"
#include "plans/schedule/step_graph.hpp"

#include <fmt/format.h>

#include <numeric>

namespace troupe::plans {

std::string_view to_string(Edge edge) {
  switch (edge) {
  case Edge::data:
    return "data";
  case Edge::version:
    return "version";
  case Edge::write_after_read:
    return "write after read";
  case Edge::order:
    return "order";
  }
  return "?";
}

std::uint32_t StepGraph::index_of(std::string_view task) const {
  const auto found = std::ranges::find(tasks, task, &TaskTemplate::name);
  TROUPE_CHECK(found != tasks.end(), fmt::format("no task '{}'", task));
  return static_cast<std::uint32_t>(found - tasks.begin());
}

Version version_for(const Role& role, StepId step, std::uint32_t lag) {
  if (!role.changes())
    return Version{0};
  const auto trained = version_for(step, lag);
  const auto every = role.ema ? role.ema->every : 1;
  return Version{trained.value - trained.value % every};
}

std::vector<std::uint32_t> steps_ahead(const StepGraph& graph) {
  std::vector<std::uint32_t> ahead(graph.tasks.size(), 0);
  std::vector<std::uint32_t> grown(graph.tasks.size());
  std::iota(grown.begin(), grown.end(), 0U);
  while (!grown.empty()) {
    const auto task = grown.back();
    grown.pop_back();
    for (const auto& need : graph.tasks[task].needs) {
      const auto wanted = std::int64_t{ahead[task]} - need.steps_back;
      // few steps are open; a graph that needs more does not finish
      const auto steps = std::min<std::int64_t>(wanted, graph.max_lag);
      if (steps <= ahead[need.task])
        continue;
      ahead[need.task] = static_cast<std::uint32_t>(steps);
      grown.push_back(need.task);
    }
  }
  return ahead;
}

} // namespace troupe::plans
