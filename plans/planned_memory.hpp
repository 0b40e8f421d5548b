// The memory of every device under a plan (plans/memory_model) with the rooms
// that its generations get out of what the plan leaves free
// (plans/answer_room), evaluation included.
#pragma once

#include "plans/plan_check.hpp"

#include <vector>

namespace troupe::plans {

struct PlannedMemory {
  std::vector<DeviceMemory> devices = {}; ///< with the rooms
  AnswerRooms rooms = {};
};

/// Of a plan whose parts are right.
PlannedMemory planned_memory(const CheckContext& context,
                             const Replicas& replicas);

/// `plan` with the answers of each of its generations (`Placement::answers`),
/// as the cost model wants it.
ExecutionPlan with_rooms(ExecutionPlan plan, const AnswerRooms& rooms);

/// What to change where `task` makes a device too full and is a generation
/// whose cache is the reason: "rollout.kv_cache_gb=auto or ..", else nothing.
std::string cache_hint(const CheckContext& context, const DeviceMemory& device,
                       const std::string& task);

} // namespace troupe::plans
