// GRPO and its kin: no critic, advantages from comparing a prompt's answers.
#pragma once

#include "plans/workflow.hpp"

namespace troupe::plans {

Workflow grpo_workflow(const Settings& settings);
} // namespace troupe::plans
