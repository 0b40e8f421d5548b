// The needs of a task of a step, as text.
#pragma once

#include "plans/schedule/step_graph.hpp"

#include <string>
#include <vector>

namespace troupe::plans {

/// Returns what a task needs: "actor_train -1 version" for a version of the
/// step before.
inline std::vector<std::string> needs_of(const StepGraph& graph,
                                         const std::string& name) {
  std::vector<std::string> texts;
  for (const auto& need : graph.tasks[graph.index_of(name)].needs)
    texts.push_back(graph.tasks[need.task].name + " -"
                    + std::to_string(need.steps_back) + " "
                    + std::string(to_string(need.edge)));
  return texts;
}

} // namespace troupe::plans
