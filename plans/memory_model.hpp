// How many bytes of device memory each task of a plan needs, over the life of a
// step. Resident: weights of home and kept replicas, gradients and optimizer
// where a role trains. On top, while a task runs: activations and logits, the
// KV cache, staging of a move; weights that come for this task only (replicas
// that are dropped after use, offloaded roles). Upper bounds for the longest
// sequences that the settings allow; the allocator's own waste is not in them.
//
// Sources: planes are exact (plans/layout). Activations count the tensors that
// a LLaMA layer keeps for its backward pass (the method of Korthikanti et al.
// 2022, arXiv 2205.05198, section 4, for RMSNorm, GQA and a gated MLP,
// attention without score matrices as in Dao et al. 2022). The KV cache is 2 *
// layers * kv_heads * head_dim elements a token, of as many answers as may be
// under way and fit its limit.
#pragma once

#include "config/dtype.hpp"
#include "config/ids.hpp"
#include "config/model_shape.hpp"
#include "plans/execution_plan.hpp"
#include "plans/replicas.hpp"
#include "plans/workflow.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::plans {

/// Sizes of a step that memory and arithmetic depend on.
struct BatchSizes {
  std::uint32_t samples_per_step = 1;
  std::uint32_t group_size = 1;   ///< samples a prompt, `rollout.n`
  std::uint32_t mini_batches = 1; ///< optimizer steps a train call and epoch
  std::uint32_t epochs = 1;       ///< passes of a train call over the samples
  std::int64_t max_sequence_tokens = 1; ///< prompt and response
  std::int64_t micro_batch_tokens = 0;  ///< 0: defaults::micro_batch_tokens
  bool recompute_activations = false;   ///< keep layer inputs only
  /// Answers under way at once on a device, and most bytes of their keys and
  /// values: the others wait. 0: no limit.
  std::uint32_t max_sequences = 0;
  std::uint64_t kv_cache_bytes = 0;
};

struct TaskMemory {
  std::string task;
  std::uint64_t bytes = 0; ///< on top of what is resident
};

struct DeviceMemory {
  Rank device = {};
  std::uint64_t weight_bytes = 0;
  std::uint64_t gradient_bytes = 0;
  std::uint64_t optimizer_bytes = 0; ///< moments; bf16: master weights too
  std::vector<TaskMemory> tasks = {};

  std::uint64_t resident_bytes() const {
    return weight_bytes + gradient_bytes + optimizer_bytes;
  }
};

/// Memory of every device of the cluster, ascending. `shapes` and `dtypes` by
/// role; a role without a shape counts as nothing, one without dtype as f32.
std::vector<DeviceMemory> device_memory(
  const Workflow& workflow, const ExecutionPlan& plan, const Replicas& replicas,
  const std::map<std::string, ModelShape>& shapes,
  const std::map<std::string, DType>& dtypes, const BatchSizes& sizes);

/// Planes of one pipeline stage on its fullest device.
struct StageBytes {
  std::uint64_t weights = 0;   ///< z3: with the room of gathered units
  std::uint64_t optimizer = 0; ///< moments; bf16: master weights too
};
/// By stage.
std::vector<StageBytes> stage_bytes(const ModelShape& shape,
                                    const Strategy& strategy, DType dtype);
/// What one call needs beside weights while it runs, on its fullest device.
std::uint64_t active_bytes(CallKind kind, const ModelShape& shape, DType dtype,
                           const Placement& placement, const BatchSizes& sizes);
/// Most bytes that a move keeps in flight on a device.
inline constexpr std::uint64_t move_staging_bytes = std::uint64_t{64} << 20;

/// Bytes that the backward pass of one layer needs a token.
std::uint64_t layer_activation_bytes(const ModelShape& shape, DType dtype);
/// Bytes of keys and values a token, all layers.
std::uint64_t kv_cache_bytes(const ModelShape& shape, DType dtype);

} // namespace troupe::plans
