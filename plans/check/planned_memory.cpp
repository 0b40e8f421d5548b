#include "plans/check/planned_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace troupe::plans {

namespace {

constexpr auto all_bytes = std::numeric_limits<std::uint64_t>::max();

/// A workflow with its plan: that of training, or its evaluation's alone.
struct PlannedPart {
  Workflow workflow;
  ExecutionPlan plan;
  BatchSizes sizes;
  Replicas replicas;
};

std::vector<DeviceMemory> memory_of(const CheckContext& context,
                                    const PlannedPart& part) {
  return device_memory(part.workflow, part.plan, part.replicas, context.shapes,
                       context.dtypes, part.sizes);
}

PlannedPart training_part(const CheckContext& context,
                          const Replicas& replicas) {
  return {context.workflow, context.plan, context.sizes, replicas};
}

/// Returns the evaluation's part; its tasks run in the memory that training
/// leaves on the devices.
PlannedPart evaluation_part(const CheckContext& context) {
  const auto& evaluation = context.evaluation;
  PlannedPart part{.workflow = evaluation_beside_training(evaluation.workflow),
                   .plan = place_evaluation(context.plan, evaluation.workflow),
                   .sizes = context.sizes,
                   .replicas = {}};
  part.sizes.samples_per_step = evaluation.samples;
  part.sizes.engine.serves = false; // our own engine generates
  part.replicas = replicas_of(part.workflow, part.plan);
  return part;
}

/// A generation of a part: the memory that it uses, and its devices.
class PlannedResponses {
public:
  PlannedResponses(const CheckContext& context, const PlannedPart& part,
                   const Call& call)
    : name_(call.name),
      replica_(part.replicas[part.replicas.of_call(call.name)]),
      context_(context),
      takes_{.shape = context.shapes.at(call.role),
             .dtype = dtype_of(context, call.role),
             .placement = part.plan.calls.at(call.name),
             .sizes = part.sizes,
             .second = {call, context.shapes, context.dtypes}} {
    for (std::uint32_t i = 0; i < replica_.devices.size(); ++i) {
      const auto rank = replica_.devices[i].value;
      if (rank >= stages_.size())
        stages_.resize(rank + 1);
      stages_[rank] = coordinate_of(replica_.strategy, i).pp;
    }
  }

  static bool applies_to(const CheckContext& context, const Call& call) {
    return call.kind == CallKind::generate && context.shapes.contains(call.role)
           && !is_served(call, context.sizes);
  }

  const ResponseCall& takes() const {
    return takes_;
  }
  /// Returns the responses that the task decodes at once in this part.
  std::uint32_t responses() const {
    return takes_.placement.responses > 0 ? takes_.placement.responses
                                          : takes_.most();
  }
  std::uint32_t num_stages() const {
    return takes_.placement.strategy.pp;
  }
  /// Returns the stage of a device of the call.
  std::optional<std::uint32_t> stage_of(Rank device) const {
    return device.value < stages_.size() ? stages_[device.value] : std::nullopt;
  }
  /// Returns the bytes that a device has left for the call, apart from planes.
  std::uint64_t free_bytes(const DeviceMemory& device,
                           std::uint32_t stage) const {
    const auto task = std::ranges::find(device.tasks, name_, &TaskMemory::task);
    const auto beside = device.resident_bytes()
                        + (task == device.tasks.end() ? 0 : task->bytes)
                        - takes_.bytes(responses(), stage);
    const auto limit = context_.memory_of(device.device);
    return limit - std::min(limit, beside);
  }
  /// Sizes the call's cache and adds it to its tasks.
  ResponseRoom settle(std::vector<DeviceMemory>& devices) const {
    std::vector<std::uint64_t> free(num_stages(), all_bytes);
    for (const auto& device : devices)
      if (const auto stage = stage_of(device.device))
        free[*stage] = std::min(free[*stage], free_bytes(device, *stage));
    const auto room = response_room(takes_, free);
    for (auto& device : devices)
      if (const auto stage = stage_of(device.device))
        std::ranges::find(device.tasks, name_, &TaskMemory::task)->bytes
          += takes_.bytes(room.responses, *stage)
             - takes_.bytes(responses(), *stage);
    return room;
  }

private:
  static DType dtype_of(const CheckContext& context, const std::string& role) {
    const auto found = context.dtypes.find(role);
    return found == context.dtypes.end() ? DType::f32 : found->second;
  }

  const std::string& name_;
  const Replica& replica_;
  const CheckContext& context_;
  ResponseCall takes_;
  std::vector<std::optional<std::uint32_t>> stages_; ///< by rank
};

/// Starts with one response at once where the number depends on memory.
void begin_small(const CheckContext& context, PlannedPart& part) {
  for (const auto& call : part.workflow.calls)
    if (part.sizes.cache_adapts && PlannedResponses::applies_to(context, call))
      part.plan.calls.at(call.name).responses = 1;
}

void settle_rooms(const CheckContext& context, const PlannedPart& part,
                  PlannedMemory& memory) {
  for (const auto& call : part.workflow.calls)
    if (PlannedResponses::applies_to(context, call))
      memory.rooms[call.name]
        = PlannedResponses(context, part, call).settle(memory.devices);
}

/// Returns gigabytes as text, never more than `bytes`.
std::string cache_gigabytes(std::uint64_t bytes) {
  const auto gb = static_cast<double>(bytes) / 1e9;
  const auto rounded = std::floor(gb * 1000) / 1000;
  return fmt::format("{:.6g}", rounded > 0 ? rounded : gb);
}

/// Returns the hint for a generation that overfills a device of `stage`.
std::string responses_hint(const PlannedResponses& call, std::uint32_t stage,
                           const DeviceMemory& device,
                           const std::string& task) {
  const auto& takes = call.takes();
  std::vector<std::uint64_t> free(call.num_stages(), all_bytes);
  free[stage] = call.free_bytes(device, stage);
  const auto responses = responses_that_fit(takes, free);
  const auto one = takes.cache_bytes(1);
  if (responses > 0)
    return fmt::format("rollout.kv_cache_gb=auto or {}, or "
                       "rollout.max_sequences={}",
                       cache_gigabytes(takes.cache_bytes(responses)),
                       responses);
  if (takes.bytes(1, stage) <= free[stage] + one)
    return fmt::format("more tensor or pipeline parallelism for {} or a "
                       "smaller rollout.max_new_tokens: the cache of one "
                       "answer takes {} GB of a device",
                       task, cache_gigabytes(one));
  return "";
}

} // namespace

PlannedMemory planned_memory(const CheckContext& context,
                             const Replicas& replicas) {
  auto training = training_part(context, replicas);
  begin_small(context, training);
  PlannedMemory memory{.devices = memory_of(context, training), .rooms = {}};
  settle_rooms(context, training, memory);
  if (context.evaluation.none())
    return memory;
  auto evaluation = evaluation_part(context);
  begin_small(context, evaluation);
  const auto more = memory_of(context, evaluation);
  for (std::size_t i = 0; i < memory.devices.size(); ++i)
    memory.devices[i].tasks.insert(memory.devices[i].tasks.end(),
                                   more[i].tasks.begin(), more[i].tasks.end());
  settle_rooms(context, evaluation, memory);
  return memory;
}

DevicePeak device_peak(const CheckContext& context,
                       const DeviceMemory& memory) {
  const auto resident = memory.resident_bytes();
  DevicePeak peak{.device = memory.device,
                  .kind = context.kind_of(memory.device),
                  .peak_bytes = resident,
                  .resident_bytes = resident,
                  .server_bytes = memory.server_bytes,
                  .tasks = memory.tasks};
  for (const auto& task : peak.tasks)
    if (resident + task.bytes > peak.peak_bytes) {
      peak.peak_bytes = resident + task.bytes;
      peak.at_task = task.task;
    }
  return peak;
}

ExecutionPlan with_rooms(ExecutionPlan plan, const ResponseRooms& rooms) {
  for (const auto& [call, room] : rooms)
    if (const auto placed = plan.calls.find(call); placed != plan.calls.end())
      placed->second.responses = room.responses;
  return plan;
}

std::string cache_hint(const CheckContext& context, const DeviceMemory& device,
                       const std::string& task) {
  const auto hint_in = [&](PlannedPart part) -> std::string {
    const auto* call = part.workflow.find_call(task);
    if (call == nullptr || !PlannedResponses::applies_to(context, *call))
      return "";
    begin_small(context, part);
    const PlannedResponses responses(context, part, *call);
    const auto stage = responses.stage_of(device.device);
    return stage ? responses_hint(responses, *stage, device, task) : "";
  };
  const auto replicas = replicas_of(context.workflow, context.plan);
  auto hint = hint_in(training_part(context, replicas));
  if (hint.empty() && !context.evaluation.none())
    hint = hint_in(evaluation_part(context));
  return hint;
}

} // namespace troupe::plans
