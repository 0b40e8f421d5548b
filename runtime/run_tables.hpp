// What `train` prints before it starts: what the user set, the batch as it is
// cut, the plan as it will run. Derived numbers that nobody should have to work
// out by hand.
#pragma once

#include "runtime/session_plan.hpp"

#include <string>

namespace troupe::runtime {

/// A line a setting that differs from its default; config.yaml has the rest.
std::string settings_table(const SessionPlan& session);
/// Rows, samples, mini-batches, samples a dp rank, tokens, optimizer steps.
std::string batch_table(const SessionPlan& session);
/// A line a call: kind, devices, strategy, lag; then replicas and devices.
std::string plan_table(const SessionPlan& session);
/// Both with the resolved settings as one document (`train --json`).
std::string tables_json(const SessionPlan& session);
/// Peak bytes by device, and at which task; then the rooms of generations.
std::string memory_table(const plans::PlanReport& report);
/// A line a generation: answers at once and the cache that they have.
std::string rooms_text(const plans::AnswerRooms& rooms);

} // namespace troupe::runtime
