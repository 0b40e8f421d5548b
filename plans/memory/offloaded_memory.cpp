#include "plans/memory/offloaded_memory.hpp"

#include "plans/memory/memory_model.hpp"
#include "plans/weights/residency.hpp"
#include "plans/workflow/frozen_roles.hpp"

namespace troupe::plans {

namespace {

/// Returns the bytes of the planes of a stage that leave a device for its host:
/// rounded weights are rounded anew.
std::uint64_t leaving_bytes(const StageBytes& stage, RoleMemory planes) {
  return (planes.offload_weights
            ? stage.weights - stage.resident - stage.rounded
            : 0)
         + (planes.offload_optimizer ? stage.optimizer : 0);
}

} // namespace

std::map<std::uint32_t, std::uint64_t> offloaded_bytes_by_node(
  const Workflow& workflow, const ExecutionPlan& plan, const Replicas& replicas,
  const std::map<std::string, ModelShape>& shapes,
  const std::map<std::string, DType>& dtypes, const BatchSizes& sizes) {
  std::map<std::uint32_t, std::uint64_t> by_node;
  for (const auto& replica : replicas.all) {
    const auto shape = shapes.find(replica.role);
    const auto planes = leaves(workflow, plan, replica);
    if (shape == shapes.end() || planes == RoleMemory{})
      continue;
    const auto dtype = dtypes.find(replica.role);
    const auto kept = weight_planes(
      sizes.engine.storage, dtype == dtypes.end() ? DType::f32 : dtype->second,
      weights_of_role(workflow, replica.role));
    const auto stages = stage_bytes(shape->second, replica.strategy, kept);
    for (std::uint32_t i = 0; i < replica.devices.size(); ++i) {
      const auto stage = coordinate_of(replica.strategy, i).pp;
      by_node[plan.cluster.node_of(replica.devices[i])]
        += leaving_bytes(stages[stage], planes);
    }
  }
  return by_node;
}

} // namespace troupe::plans
