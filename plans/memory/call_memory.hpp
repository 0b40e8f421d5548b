// Memory that one call takes on its devices besides the planes of its replica,
// while it runs: passes through the stack (plans/memory/pass_memory), the KV
// cache, packed copies of weights. All of it is freed when the call ends. Upper
// bounds for the longest sequences that the settings allow.
#pragma once

#include "config/base/defaults.hpp"
#include "config/base/dtype.hpp"
#include "config/model/model_shape.hpp"
#include "config/settings/settings_types.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"

#include <cstdint>

namespace troupe::plans {

/// Sizes of a step that memory and arithmetic depend on.
struct BatchSizes {
  std::uint32_t samples_per_step = 1;
  std::uint32_t group_size = 1;   ///< samples per prompt, `rollout.n`
  std::uint32_t mini_batches = 1; ///< optimizer steps per train call and epoch
  std::uint32_t epochs = 1;       ///< passes of a train call over the samples
  std::int64_t max_sequence_tokens = 1; ///< prompt and response
  std::int64_t max_new_tokens = 0; ///< of them; 0: all tokens are trained on
  std::int64_t micro_batch_tokens = 0; ///< 0: defaults::micro_batch_tokens
  bool recompute_activations = false;  ///< keep layer inputs only
  /// Limits per device on responses decoded at once and on the bytes of their
  /// keys and values: the others wait. 0: no limit.
  std::uint32_t max_sequences = 0;
  std::uint64_t kv_cache_bytes = 0;
  /// `rollout.kv_cache_gb: auto`: the cache gets what a plan leaves free, up to
  /// these limits (response_room.hpp).
  bool cache_adapts = false;
  std::int64_t max_batch_tokens = 0; ///< of a pass of generation; 0: default
  /// Most bytes per device that are staged for an EMA update; other moves are
  /// received in place.
  std::uint64_t move_staging_bytes = ClusterSettings{}.move_staging_bytes();
  /// Generation multiplies copies of the weights in the dtype of its products,
  /// as ours does: packed on the host, rounded or fused on a GPU.
  bool packs_weights = false;
  /// An engine that stores its operands in the dtype of its products, as
  /// published systems on GPUs do. Ours keeps fp32 on every device.
  bool stores_operands = false;
};

/// Returns the sizes as a call meets them: a training with rows of data.ptx has
/// these too, and all their tokens are trained on.
BatchSizes sizes_of(const Call& call, BatchSizes sizes);

/// Returns the dtype of weights, gradients, activations and cache if products
/// are of `dtype`.
DType stored_dtype(const BatchSizes& sizes, DType dtype);

/// Returns whether responses may have to wait for a slot.
inline bool has_limited_places(const BatchSizes& sizes,
                               const Placement& placement) {
  return sizes.max_sequences > 0 || sizes.kv_cache_bytes > 0
         || placement.responses > 0;
}
/// Returns the responses that a dp rank decodes at once; the others wait for a
/// slot.
std::uint64_t responses_under_way(const ModelShape& shape, DType dtype,
                                  const Placement& placement,
                                  const BatchSizes& sizes);

/// Returns the bytes on each device of one pipeline stage; `dtype` is that of
/// products.
std::uint64_t active_bytes(CallKind kind, const ModelShape& shape, DType dtype,
                           const Placement& placement, const BatchSizes& sizes,
                           std::uint32_t stage);
/// Returns the bytes on the call's fullest device.
std::uint64_t active_bytes(CallKind kind, const ModelShape& shape, DType dtype,
                           const Placement& placement, const BatchSizes& sizes);

/// Returns the elements of a cache slot that holds `tokens`, on a device of one
/// stage.
std::uint64_t cache_slot_elements(const ModelShape& shape,
                                  const Strategy& strategy, std::uint32_t stage,
                                  std::int64_t tokens);

} // namespace troupe::plans
