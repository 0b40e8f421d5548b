// Adds the parts of a user-defined program (sections, actors, workflows) to the
// tables of settings, plans, models and actors, before any command runs. After
// this nothing distinguishes a user-defined workflow from a built-in one.
#pragma once

#include "troupe/app.hpp"

#include <vector>

namespace troupe::runtime {

struct UserProgram {
  std::vector<detail::UserSection> sections;
  std::vector<detail::UserActor> actors;
  std::vector<detail::WorkflowParts> workflows;
};

/// Throws ConfigError for names that are taken, user-defined actors without
/// spawnable, and workflows that do not fit together.
void register_user_program(const UserProgram& program);

} // namespace troupe::runtime
