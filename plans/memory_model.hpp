// How many bytes of device memory each task of a plan needs, over the life of a
// step. Resident: weights of home and kept replicas, gradients and optimizer
// where a role trains. On top, while a task runs: what its call takes
// (plans/call_memory), and weights that come for this task only (replicas that
// are dropped after use, offloaded roles). Upper bounds for the longest
// sequences that the settings allow; what a run really takes is counted
// (net/memory_count), task by task under the same names. Not in them: tables of
// rotations, which are small, and what kernels take for themselves.
#pragma once

#include "config/dtype.hpp"
#include "config/ids.hpp"
#include "config/model_shape.hpp"
#include "plans/call_memory.hpp"
#include "plans/execution_plan.hpp"
#include "plans/replicas.hpp"
#include "plans/workflow.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::plans {

struct TaskMemory {
  std::string task;
  std::uint64_t bytes = 0;       ///< on top of what is resident
  std::uint64_t plane_bytes = 0; ///< of them those of planes
};

struct DeviceMemory {
  Rank device = {};
  std::uint64_t weight_bytes = 0;
  std::uint64_t gradient_bytes = 0;
  std::uint64_t optimizer_bytes = 0; ///< as in StageBytes
  std::vector<TaskMemory> tasks = {};

  std::uint64_t resident_bytes() const {
    return weight_bytes + gradient_bytes + optimizer_bytes;
  }
};

/// Memory of every device of the cluster, ascending. `shapes` and `dtypes` by
/// role; a role without a shape counts as nothing, one without dtype (of its
/// products) as f32.
std::vector<DeviceMemory> device_memory(
  const Workflow& workflow, const ExecutionPlan& plan, const Replicas& replicas,
  const std::map<std::string, ModelShape>& shapes,
  const std::map<std::string, DType>& dtypes, const BatchSizes& sizes);

/// Planes of one pipeline stage on its fullest device.
struct StageBytes {
  std::uint64_t weights = 0;   ///< z3: with the room of gathered units
  std::uint64_t gradients = 0; ///< likewise; z1: with the room of a cut unit
  std::uint64_t optimizer = 0; ///< moments; master weights if not stored fp32
  std::uint64_t windows = 0;   ///< of the weights, that room: it never leaves
};
/// By stage; weights and gradients as `stored`.
std::vector<StageBytes> stage_bytes(const ModelShape& shape,
                                    const Strategy& strategy,
                                    DType stored = DType::f32);
} // namespace troupe::plans
