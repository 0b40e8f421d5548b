// The memory of every device under a plan (plans/memory/memory_model), with the
// KV caches that its generations get from the memory that the plan leaves free
// (plans/memory/response_room), evaluation included.
#pragma once

#include "plans/check/plan_check.hpp"

#include <vector>

namespace troupe::plans {

struct PlannedMemory {
  std::vector<DeviceMemory> devices = {}; ///< with those caches
  ResponseRooms rooms = {};
};

/// Computes the memory of a plan whose parts are valid.
PlannedMemory planned_memory(const CheckContext& context,
                             const Replicas& replicas);

/// Returns the peak of a device over the tasks of a step.
DevicePeak device_peak(const CheckContext& context, const DeviceMemory& memory);

/// Returns `plan` with the number of responses that each of its generations
/// decodes at once (`Placement::responses`), as the cost model needs it.
ExecutionPlan with_rooms(ExecutionPlan plan, const ResponseRooms& rooms);

/// Returns what to change if `task` overfills a device and is a generation
/// whose cache is the reason: "rollout.kv_cache_gb=auto or ...", else an empty
/// string.
std::string cache_hint(const CheckContext& context, const DeviceMemory& device,
                       const std::string& task);

} // namespace troupe::plans
