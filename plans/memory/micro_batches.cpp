#include "plans/memory/micro_batches.hpp"

#include "config/base/defaults.hpp"
#include "plans/memory/memory_model.hpp"
#include "plans/workflow/context_share.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::plans {

MicroBatches micro_batches_of(CallKind kind, const Placement& placement,
                              const BatchSizes& sizes, double sequence_tokens) {
  const auto& strategy = placement.strategy;
  double samples = sizes.samples_per_step;
  if (kind == CallKind::train)
    samples /= std::max(1u, sizes.mini_batches);
  else
    samples /= std::max(1, placement.chunks);
  samples = std::max(
    1.0, std::ceil(samples * ranks_of_a_sample(kind, strategy) / strategy.dp));
  double count = placement.micro_batches;
  if (placement.micro_batches == 0) {
    auto budget = placement.micro_batch_tokens > 0
                    ? placement.micro_batch_tokens
                    : sizes.micro_batch_tokens;
    if (budget <= 0)
      budget = defaults::micro_batch_tokens;
    // Decoding takes all samples at once, it has no passes to cut.
    count
      = kind == CallKind::generate
          ? 1
          : std::ceil(samples * sequence_tokens / static_cast<double>(budget));
    const auto stages
      = kind == CallKind::generate ? strategy.pp : 2 * strategy.pp;
    if (strategy.pp > 1)
      count = std::max(count, double(stages));
  }
  count = std::clamp(count, 1.0, samples);
  return {static_cast<std::uint32_t>(count), samples / count};
}

} // namespace troupe::plans
