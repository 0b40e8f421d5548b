// How many bytes of device memory each task of a plan needs during a step.
// Resident: weights of home and kept replicas, gradients and optimizer where a
// role trains. On top, while a task runs: what its call uses
// (plans/memory/call_memory), and weights that are loaded for this task only
// (replicas that are dropped after use, offloaded roles). Upper bounds for the
// longest sequences that the settings allow; what a run really uses is counted
// (net/base/memory_count), task by task under the same names. Not included:
// rotary tables, which are small, and workspaces of kernels.
#pragma once

#include "config/base/dtype.hpp"
#include "config/base/ids.hpp"
#include "config/model/model_shape.hpp"
#include "plans/memory/call_memory.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/weights/replicas.hpp"
#include "plans/weights/stage_layers.hpp"
#include "plans/workflow/workflow.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe::plans {

struct TaskMemory {
  std::string task;
  std::uint64_t bytes = 0;       ///< on top of what is resident
  std::uint64_t plane_bytes = 0; ///< of them, bytes of planes
  bool operator==(const TaskMemory&) const = default;
};

struct DeviceMemory {
  Rank device = {};
  std::uint64_t weight_bytes = 0;
  std::uint64_t gradient_bytes = 0;
  std::uint64_t optimizer_bytes = 0; ///< as in StageBytes
  std::uint64_t server_bytes = 0;    ///< of servers (server_memory.hpp)
  std::vector<TaskMemory> tasks = {};

  std::uint64_t resident_bytes() const {
    return weight_bytes + gradient_bytes + optimizer_bytes + server_bytes;
  }
  bool holds_the_same(const DeviceMemory& other) const {
    return weight_bytes == other.weight_bytes
           && gradient_bytes == other.gradient_bytes
           && optimizer_bytes == other.optimizer_bytes
           && server_bytes == other.server_bytes && tasks == other.tasks;
  }
};

/// Returns the memory of every device of the cluster, ascending. `shapes` and
/// `dtypes` by role; a role without a shape counts as nothing, one without
/// dtype (of its products) as f32.
std::vector<DeviceMemory> device_memory(
  const Workflow& workflow, const ExecutionPlan& plan, const Replicas& replicas,
  const std::map<std::string, ModelShape>& shapes,
  const std::map<std::string, DType>& dtypes, const BatchSizes& sizes);

/// Planes of one pipeline stage on its fullest device.
struct StageBytes {
  std::uint64_t weights = 0;   ///< z3: with the buffers of gathered units
  std::uint64_t rounded = 0;   ///< of them, the second plane, if there is one
  std::uint64_t gradients = 0; ///< z3: likewise; z1: with a cut unit's buffer
  std::uint64_t optimizer = 0; ///< moments; master weights if not stored fp32
  /// The part of the weights that is always there: those buffers, and frozen
  /// weights.
  std::uint64_t resident = 0;
};
/// The parameters that a replica of a model holds, listed once for many
/// strategies.
class HeldParameters {
public:
  explicit HeldParameters(const ModelShape& shape);
  const ModelShape& shape() const {
    return shape_;
  }
  StagedParameters trained() const {
    return {trained_, shape_};
  }
  /// Returns those of a model with adapters; empty for others.
  StagedParameters frozen() const {
    return {frozen_, shape_};
  }
  /// Returns those of the whole model that products do not read.
  StagedParameters not_rounded() const {
    return {not_rounded_, shape_};
  }

private:
  ModelShape shape_;
  std::vector<ParameterShape> trained_, frozen_, not_rounded_;
};
/// Returns whether even frozen weights have fp32 masters: shards of z3, from
/// which kernels gather, and adapters.
bool needs_masters(const ModelShape& shape, const Strategy& strategy);

/// Returns the planes by stage; weights and gradients as stored, gradients in
/// one plane. z3 keeps no second plane of its shards, but rounds what it
/// gathers.
std::vector<StageBytes> stage_bytes(const HeldParameters& held,
                                    const Strategy& strategy,
                                    const WeightPlanes& planes);
std::vector<StageBytes> stage_bytes(const ModelShape& shape,
                                    const Strategy& strategy,
                                    const WeightPlanes& planes = {});

} // namespace troupe::plans
