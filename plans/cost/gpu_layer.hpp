// Launches and bytes that a GPU is given for one layer of a model: the counts
// of gpu_counts.hpp, which are those of one model with eight experts, for the
// number of experts that its tokens go to, and what our engine's host does
// meanwhile. Pure arithmetic.
#pragma once

#include "config/base/defaults.hpp"
#include "config/base/strategy.hpp"
#include "plans/cost/gpu_counts.hpp"
#include "plans/cost/model_work.hpp"

#include <cstdint>

namespace troupe::plans {

/// Rows of experts that are gathered together for a product.
inline constexpr double grouped_rows = defaults::grouped_rows_at_once_on_gpu;

enum class GpuPass : std::uint8_t { decode, score, train, prompt };

/// A layer of a pass, `train` both ways.
struct GpuLayer {
  double launches = 0;
  double traffic = 0;
  std::int64_t blocking_copies = 0;
};

/// Returns whether libtorch multiplies groups in one launch on GPUs of this
/// compute capability (models/gpu/aten_options.hpp): Hopper and Blackwell.
constexpr bool multiplies_in_groups(double compute_capability) {
  return compute_capability >= 9 && compute_capability < 11;
}

/// Returns the columns of an expert on a device.
double expert_width(const internal::ModelWork& model, const Strategy& strategy);
/// Returns whether a pass multiplies experts in groups: in bf16, on GPUs that
/// can, with widths that are multiples of 8 on a device.
bool has_groups(const internal::ModelWork& model, GpuPass pass,
                const Strategy& strategy, double compute_capability);

/// Returns what a device is given for the last layer of a model, if `tokens`
/// are those of a dp rank.
GpuLayer gpu_layer(const internal::ModelWork& model, GpuPass pass,
                   double tokens, const Strategy& strategy,
                   double compute_capability);

/// Passes that feed the prompts of a generation, all alike.
struct PromptPasses {
  double count = 1;
  double tokens = 0;    ///< of a pass
  double later = 0;     ///< share of the passes that begin within a prompt
  double continued = 0; ///< share of the tokens whose prompt is cached in part
};
/// Returns those of `tokens` tokens of prompts of `length` tokens, with at most
/// `most` tokens each.
PromptPasses prompt_passes(double tokens, double length, double most);
/// Returns what a device is given for a layer of each pass, on average.
GpuLayer prompt_layer(const internal::ModelWork& model,
                      const PromptPasses& passes, const Strategy& strategy,
                      double compute_capability);

/// Returns whether a decode step is replayed as a graph: where the host has no
/// part in it, as it has where it assigns tokens to experts.
bool is_captured(const internal::ModelWork& model, const Strategy& strategy,
                 double compute_capability);
/// Returns whether the host works for a decode step while the device computes
/// the one before; not in a pipeline.
bool runs_ahead(const internal::ModelWork& model, const Strategy& strategy,
                double compute_capability);

} // namespace troupe::plans
