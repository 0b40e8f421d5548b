// What an own program adds (sections, actors, workflows) goes into the tables
// of settings, plans, models and actors, before any verb runs. After this
// nothing tells an own workflow from a built-in one.
#pragma once

#include "troupe/app.hpp"

#include <vector>

namespace troupe::runtime {

struct OwnProgram {
  std::vector<detail::OwnSection> sections;
  std::vector<detail::OwnActor> actors;
  std::vector<detail::WorkflowParts> workflows;
};

/// Throws ConfigError for names that are taken, own actors without spawnable,
/// and workflows that do not fit together.
void register_own_program(const OwnProgram& program);

} // namespace troupe::runtime
