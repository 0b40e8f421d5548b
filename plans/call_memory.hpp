// What one call takes of its devices beside the planes of its replica, while it
// runs: passes through the stack (plans/pass_memory), the KV cache, packed
// copies of weights. All of it goes when the call ends. Upper bounds for the
// longest sequences that the settings allow.
#pragma once

#include "config/defaults.hpp"
#include "config/dtype.hpp"
#include "config/model_shape.hpp"
#include "plans/execution_plan.hpp"
#include "plans/workflow.hpp"

#include <cstdint>

namespace troupe::plans {

/// Sizes of a step that memory and arithmetic depend on.
struct BatchSizes {
  std::uint32_t samples_per_step = 1;
  std::uint32_t group_size = 1;   ///< samples a prompt, `rollout.n`
  std::uint32_t mini_batches = 1; ///< optimizer steps a train call and epoch
  std::uint32_t epochs = 1;       ///< passes of a train call over the samples
  std::int64_t max_sequence_tokens = 1; ///< prompt and response
  std::int64_t max_new_tokens = 0;      ///< of them; 0: all are learned from
  std::int64_t micro_batch_tokens = 0;  ///< 0: defaults::micro_batch_tokens
  bool recompute_activations = false;   ///< keep layer inputs only
  /// Answers under way at once on a device, and most bytes of their keys and
  /// values: the others wait. 0: no limit.
  std::uint32_t max_sequences = 0;
  std::uint64_t kv_cache_bytes = 0;
  /// `rollout.kv_cache_gb: auto`: the cache takes what a plan leaves free, up
  /// to these limits (answer_room.hpp).
  bool cache_adapts = false;
  std::int64_t max_batch_tokens = 0; ///< of a pass of generation; 0: default
  /// Most that a device keeps of what comes to be blended in; other moves land
  /// in place.
  std::uint64_t move_staging_bytes = defaults::move_staging_bytes;
  /// Generation multiplies packed copies of the weights: kernels of the host.
  bool packs_weights = false;
  /// An engine that keeps what it computes with in the dtype of its products,
  /// as published systems on GPUs do. Ours keeps fp32 on the host.
  bool stores_operands = false;
};

/// Of weights, gradients, activations and cache where products are of `dtype`.
DType stored_dtype(const BatchSizes& sizes, DType dtype);

/// Whether answers may have to wait for a place.
inline bool has_limited_places(const BatchSizes& sizes,
                               const Placement& placement) {
  return sizes.max_sequences > 0 || sizes.kv_cache_bytes > 0
         || placement.answers > 0;
}
/// Answers that a dp rank works on at once; the others wait for a place.
std::uint64_t answers_under_way(const ModelShape& shape, DType dtype,
                                const Placement& placement,
                                const BatchSizes& sizes);

/// On each device of one pipeline stage; `dtype` is that of products.
std::uint64_t active_bytes(CallKind kind, const ModelShape& shape, DType dtype,
                           const Placement& placement, const BatchSizes& sizes,
                           std::uint32_t stage);
/// On its fullest device.
std::uint64_t active_bytes(CallKind kind, const ModelShape& shape, DType dtype,
                           const Placement& placement, const BatchSizes& sizes);

/// Of a cache slot that holds `tokens`, on a device of one stage.
std::uint64_t cache_slot_elements(const ModelShape& shape,
                                  const Strategy& strategy, std::uint32_t stage,
                                  std::int64_t tokens);

} // namespace troupe::plans
