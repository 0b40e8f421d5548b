#include "plans/memory/memory_model.hpp"

#include "config/model/product_operands.hpp"
#include "plans/memory/second_models.hpp"
#include "plans/memory/server_memory.hpp"
#include "plans/weights/gather_buffers.hpp"
#include "plans/weights/layout.hpp"
#include "plans/weights/residency.hpp"
#include "plans/workflow/call_levels.hpp"
#include "plans/workflow/frozen_roles.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>

namespace troupe::plans {

namespace {

/// Returns by stage the elements of the buffer through which z1 cuts and
/// gathers the largest unit (models/parallel/zero1_partition); 0 for other
/// strategies.
std::vector<std::uint64_t> cut_elements(const StagedParameters& parameters,
                                        const Strategy& strategy) {
  std::vector<std::uint64_t> elements(strategy.pp, 0);
  if (strategy.zero != Zero::z1 || strategy.dp == 1)
    return elements;
  const auto boxes = first_boxes(parameters, strategy);
  for (std::uint32_t stage = 0; stage < strategy.pp; ++stage)
    for (const auto& unit :
         gather_buffers(parameters.list, boxes[stage], strategy).units) {
      const auto holders = unit_holders(strategy, unit.is_dealt);
      elements[stage] = std::max(
        elements[stage], static_cast<std::uint64_t>(unit.run * (holders + 1)));
    }
  return elements;
}

DType memory_dtype(const std::map<std::string, DType>& dtypes,
                   const std::string& role) {
  const auto found = dtypes.find(role);
  return found == dtypes.end() ? DType::f32 : found->second;
}

/// Sums up what each device holds and needs.
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
      sizes_(sizes),
      awaited_(awaited_calls(workflow)) {
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
    const auto sizes = sizes_of(call, sizes_);
    const SecondModels second(call, shapes_, dtypes_);
    std::vector<std::uint64_t> by_stage;
    for (std::uint32_t stage = 0; stage < placement.strategy.pp; ++stage)
      by_stage.push_back(active_bytes(call.kind, shapes_.at(call.role),
                                      memory_dtype(dtypes_, call.role),
                                      placement, sizes, stage)
                         + second.active_bytes(placement, sizes, stage));
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

  std::size_t index_of(const std::string& call) const {
    return static_cast<std::size_t>(&workflow_.call(call)
                                    - workflow_.calls.data());
  }
  int chunks_of(const std::string& call) const {
    const auto placement = plan_.calls.find(call);
    return placement == plan_.calls.end() ? 1 : placement->second.chunks;
  }

  /// Returns whether all of `call` runs after all of `other`.
  bool waits(const std::string& call, const std::string& other) const {
    return awaited_[index_of(call)][index_of(other)]
           && (chunks_of(call) == 1 || chunks_of(other) == 1);
  }

  bool may_come_between(const std::string& call,
                        const std::vector<std::string>& readers) const {
    const auto& first = readers.front();
    const auto ends
      = [&](const std::string& reader) { return waits(call, reader); };
    return (readers.size() > 1 || chunks_of(first) > 1) && !waits(first, call)
           && !std::ranges::all_of(readers, ends);
  }

  /// Adds `bytes` to the calls that planes are loaded for, from the first to
  /// the last, and to calls that may run between them or their chunks. Nothing
  /// runs between loading the planes and the first call (total_order.hpp).
  void add_stay(const std::vector<std::string>& readers, DeviceMemory& device,
                std::uint64_t bytes) {
    for (const auto& call : workflow_.calls)
      if (std::ranges::count(readers, call.name) > 0
          || may_come_between(call.name, readers))
        add_to_task(device, call.name, bytes);
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

  /// Returns the bytes of a replica's servers on a device: calls share them.
  std::uint64_t server_bytes_of(const Replica& replica) const {
    std::uint64_t bytes = 0;
    for (const auto& name : replica.calls)
      bytes = std::max(bytes, server_device_bytes(
                                workflow_.call(name), shapes_.at(replica.role),
                                memory_dtype(dtypes_, replica.role),
                                replica.strategy, sizes_));
    return bytes;
  }

  void add_replica(const Replica& replica) {
    const auto stages = stage_bytes(
      shapes_.at(replica.role), replica.strategy,
      weight_planes(sizes_.engine.storage, memory_dtype(dtypes_, replica.role),
                    weights_of_role(workflow_, replica.role)));
    const bool dropped = is_dropped(workflow_, plan_, replica);
    const bool offloaded = leaves(workflow_, plan_, replica).offload_weights;
    const bool trained = workflow_.role(replica.role).trained;
    const bool trains = replica.home && trained;
    const bool moved = trained && !replica.home;
    // the version for a lagged call stays there from the move on
    const bool comes
      = dropped || (offloaded && !(moved && has_lag(plan_, replica)));
    const auto served = server_bytes_of(replica);
    for (std::size_t i = 0; i < replica.devices.size(); ++i) {
      auto& device = devices_.at(replica.devices[i].value);
      const auto& stage = stages.at(
        coordinate_of(replica.strategy, static_cast<std::uint32_t>(i)).pp);
      const auto planes = stage.weights - stage.resident;
      device.server_bytes += served;
      device.weight_bytes += comes ? stage.resident : stage.weights;
      if (dropped)
        add_stay(replica.calls, device, planes);
      else if (comes)
        for (const auto& call : replica.calls)
          add_stay({call}, device, planes);
      if (comes && moved)
        device.tasks.push_back({replica.name(), planes, planes});
      if (trains)
        add_training(replica, device, stage);
      if (workflow_.role(replica.role).ema)
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
  std::vector<std::vector<bool>> awaited_; ///< of awaited_calls
  std::vector<DeviceMemory> devices_;
};

} // namespace

HeldParameters::HeldParameters(const ModelShape& shape)
  : shape_(shape),
    trained_(trained_parameters(shape)) {
  if (shape.lora.exists())
    frozen_ = parameters(shape);
  std::ranges::copy_if(shape.lora.exists() ? frozen_ : trained_,
                       std::back_inserter(not_rounded_),
                       std::not_fn(read_by_products));
}

bool needs_masters(const ModelShape& shape, const Strategy& strategy) {
  return cuts_weights(strategy) || shape.lora.exists();
}

std::vector<StageBytes> stage_bytes(const ModelShape& shape,
                                    const Strategy& strategy,
                                    const WeightPlanes& planes) {
  return stage_bytes(HeldParameters(shape), strategy, planes);
}

namespace {

/// Adds the second plane of weights that may change.
void add_rounded(const StagedParameters& trained, const Strategy& strategy,
                 DType rounded, std::vector<StageBytes>& stages) {
  const bool is_cut = cuts_weights(strategy);
  const auto whole
    = is_cut ? window_bytes(trained.list, strategy, rounded)
             : largest_shards(trained, strategy, rounded, LayoutKind::weights);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    stages[i].weights += whole[i];
    (is_cut ? stages[i].resident : stages[i].rounded) += whole[i];
  }
}

/// Returns the bytes of weights without masters.
std::vector<std::uint64_t> bytes_without_masters(const HeldParameters& held,
                                                 const StagedParameters& list,
                                                 const Strategy& strategy,
                                                 DType rounded) {
  auto bytes = largest_shards(list, strategy, rounded, LayoutKind::weights);
  const auto beside = largest_shards(held.not_rounded(), strategy, DType::f32,
                                     LayoutKind::weights);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] += beside[i];
  return bytes;
}

} // namespace

std::vector<StageBytes> stage_bytes(const HeldParameters& held,
                                    const Strategy& strategy,
                                    const WeightPlanes& kept) {
  const auto stored = kept.stored;
  const auto trained = held.trained();
  const auto frozen = held.frozen();
  const bool no_masters
    = kept.has_no_masters && !needs_masters(held.shape(), strategy);
  const auto weights
    = no_masters
        ? bytes_without_masters(held, trained, strategy, *kept.rounded)
        : largest_shards(trained, strategy, stored, LayoutKind::weights);
  const auto moments
    = largest_shards(trained, strategy, DType::f32, LayoutKind::optimizer);
  const auto windows = window_bytes(trained.list, strategy, stored);
  const auto cut = cut_elements(trained, strategy);
  const std::uint64_t num_planes = stored == DType::f32 ? 2 : 3;
  std::vector<StageBytes> stages(weights.size());
  for (std::uint32_t i = 0; i < stages.size(); ++i) {
    const auto planes = weights[i] + windows[i];
    stages[i] = {.weights = planes,
                 .gradients = planes + cut[i] * size_bytes(stored),
                 .optimizer = num_planes * moments[i],
                 .resident = windows[i]};
  }
  if (kept.rounded && !no_masters)
    add_rounded(trained, strategy, *kept.rounded, stages);
  if (frozen.list.empty())
    return stages;
  const auto always
    = kept.rounded
        ? bytes_without_masters(held, frozen, strategy, *kept.rounded)
        : largest_shards(frozen, strategy, stored, LayoutKind::weights);
  for (std::uint32_t i = 0; i < stages.size(); ++i) {
    stages[i].weights += always[i];
    stages[i].resident += always[i];
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
