#include "plans/memory_model.hpp"

#include "plans/layout.hpp"
#include "plans/replica_life.hpp"
#include "plans/unit_windows.hpp"

#include <algorithm>
#include <span>

namespace troupe::plans {

namespace {

/// Elements of the buffer through which z1 cuts and gathers the largest unit
/// (models/unit_cut); 0 for other strategies.
std::uint64_t cut_elements(std::span<const ParameterShape> parameters,
                           const Strategy& strategy, std::uint32_t stage) {
  if (strategy.zero != Zero::z1 || strategy.dp == 1)
    return 0;
  std::map<std::int32_t, std::int64_t> units;
  for (const Box& box : whole_boxes(parameters, strategy, {.pp = stage}))
    units[parameters[box.parameter].layer] += box.num_elements();
  std::int64_t most = 0;
  for (const auto& [layer, elements] : units)
    most = std::max(most, elements);
  const std::int64_t copies = strategy.dp;
  return static_cast<std::uint64_t>((most + copies - 1) / copies
                                    * (copies + 1));
}

DType memory_dtype(const std::map<std::string, DType>& dtypes,
                   const std::string& role) {
  const auto found = dtypes.find(role);
  return found == dtypes.end() ? DType::f32 : found->second;
}

/// Adds up what each device holds and needs.
class MemoryBook {
public:
  MemoryBook(const Workflow& workflow, const ExecutionPlan& plan,
             const Replicas& replicas,
             const std::map<std::string, ModelShape>& shapes,
             const std::map<std::string, DType>& dtypes,
             const BatchSizes& sizes)
    : workflow_(workflow),
      plan_(plan),
      replicas_(replicas),
      shapes_(shapes),
      dtypes_(dtypes),
      sizes_(sizes) {
    for (std::uint32_t rank = 0; rank < plan.cluster.num_devices(); ++rank)
      devices_.push_back({.device = Rank{rank}});
  }

  std::vector<DeviceMemory> add_up() {
    for (const auto& call : workflow_.calls)
      if (shapes_.contains(call.role))
        add_call(call);
    for (const auto& replica : replicas_.all)
      if (shapes_.contains(replica.role))
        add_replica(replica);
    return std::move(devices_);
  }

private:
  void add_call(const Call& call) {
    const auto& placement = plan_.calls.at(call.name);
    std::vector<std::uint64_t> by_stage;
    for (std::uint32_t stage = 0; stage < placement.strategy.pp; ++stage)
      by_stage.push_back(active_bytes(call.kind, shapes_.at(call.role),
                                      memory_dtype(dtypes_, call.role),
                                      placement, sizes_, stage));
    const auto& replica = replicas_[replicas_.of_call(call.name)];
    for (std::uint32_t i = 0; i < replica.devices.size(); ++i) {
      const auto stage = coordinate_of(replica.strategy, i).pp;
      devices_.at(replica.devices[i].value)
        .tasks.push_back({.task = call.name, .bytes = by_stage[stage]});
    }
  }

  static void add_to_task(DeviceMemory& device, const std::string& name,
                          std::uint64_t bytes) {
    for (auto& task : device.tasks)
      if (task.task == name) {
        task.bytes += bytes;
        task.plane_bytes += bytes;
      }
  }

  /// `bytes` for every task on the device from the replica's first reader to
  /// its last one, and for the move that brings them.
  void add_transient(const Replica& replica, DeviceMemory& device,
                     std::uint64_t bytes) {
    const auto& last = replica.calls.back();
    bool reads = false;
    for (const auto& call : workflow_.calls) {
      reads = reads || call.name == replica.calls.front();
      if (reads)
        add_to_task(device, call.name, bytes);
      if (call.name == last)
        break;
    }
    device.tasks.push_back({replica.name(), bytes, bytes});
  }

  /// `bytes` for a call that they come for, and for the calls that may run
  /// between its chunks.
  void add_coming(const Replica& replica, const std::string& name,
                  DeviceMemory& device, std::uint64_t bytes) {
    add_to_task(device, name, bytes);
    if (plan_.calls.at(name).chunks == 1)
      return;
    for (const auto& call : workflow_.calls) {
      const bool whole = call.kind == CallKind::generate
                         && plan_.calls.at(call.name).chunks == 1;
      if (call.kind != CallKind::train && !whole
          && std::ranges::count(replica.calls, call.name) == 0)
        add_to_task(device, call.name, bytes);
    }
  }

  void add_training(const Replica& replica, DeviceMemory& device,
                    const StageBytes& stage) {
    device.gradient_bytes += stage.gradients;
    if (!leaves(workflow_, plan_, replica).offload_optimizer)
      device.optimizer_bytes += stage.optimizer;
    else
      for (const auto& name : replica.calls)
        if (workflow_.call(name).kind == CallKind::train)
          add_to_task(device, name, stage.optimizer);
  }

  void add_replica(const Replica& replica) {
    const auto stored
      = stored_dtype(sizes_, memory_dtype(dtypes_, replica.role));
    const auto stages
      = stage_bytes(shapes_.at(replica.role), replica.strategy, stored);
    const bool dropped = is_dropped(workflow_, plan_, replica);
    const bool offloaded = leaves(workflow_, plan_, replica).offload_weights;
    const bool trained = workflow_.role(replica.role).trained;
    const bool trains = replica.home && trained;
    // what a move brings is on the device from then on
    const bool transient = dropped || (offloaded && trained && !replica.home);
    for (std::size_t i = 0; i < replica.devices.size(); ++i) {
      auto& device = devices_.at(replica.devices[i].value);
      const auto& stage = stages.at(
        coordinate_of(replica.strategy, static_cast<std::uint32_t>(i)).pp);
      const auto planes = stage.weights - stage.windows;
      device.weight_bytes
        += transient || offloaded ? stage.windows : stage.weights;
      if (transient)
        add_transient(replica, device, planes);
      else if (offloaded)
        for (const auto& call : replica.calls)
          add_coming(replica, call, device, planes);
      if (trains)
        add_training(replica, device, stage);
      if (workflow_.role(replica.role).follows)
        device.tasks.push_back(
          {.task = replica.name(),
           .bytes = std::min(stage.weights, sizes_.move_staging_bytes)});
    }
  }

  const Workflow& workflow_;
  const ExecutionPlan& plan_;
  const Replicas& replicas_;
  const std::map<std::string, ModelShape>& shapes_;
  const std::map<std::string, DType>& dtypes_;
  const BatchSizes& sizes_;
  std::vector<DeviceMemory> devices_;
};

} // namespace

std::vector<StageBytes> stage_bytes(const ModelShape& shape,
                                    const Strategy& strategy, DType stored) {
  const auto all = parameters(shape);
  const auto weights = largest_shards(all, strategy, stored, Plane::weight);
  const auto moments
    = largest_shards(all, strategy, DType::f32, Plane::optimizer);
  const auto windows = window_bytes(all, strategy, stored);
  const std::uint64_t num_planes = stored == DType::f32 ? 2 : 3;
  std::vector<StageBytes> stages(weights.size());
  for (std::uint32_t i = 0; i < stages.size(); ++i) {
    const auto planes = weights[i] + windows[i];
    stages[i]
      = {planes, planes + cut_elements(all, strategy, i) * size_bytes(stored),
         num_planes * moments[i], windows[i]};
  }
  return stages;
}

std::vector<DeviceMemory> device_memory(
  const Workflow& workflow, const ExecutionPlan& plan, const Replicas& replicas,
  const std::map<std::string, ModelShape>& shapes,
  const std::map<std::string, DType>& dtypes, const BatchSizes& sizes) {
  return MemoryBook(workflow, plan, replicas, shapes, dtypes, sizes).add_up();
}

} // namespace troupe::plans
