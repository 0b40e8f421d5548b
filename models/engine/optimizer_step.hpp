// The end of an optimizer step: norm, clipping, learning rate, AdamW. It is
// skipped where the norm is not finite.
#pragma once

#include "models/engine/engine.hpp"

#include <string>

namespace troupe::models {

/// Updates the weights from the reduced gradient and adds grad_norm, lr and
/// skipped_steps under `prefix`. The norm is that of the reduced gradient, so
/// all ranks decide alike.
void optimizer_step(Engine::Impl& impl, const RunContext& context,
                    const std::string& prefix, MetricSums& sums);

} // namespace troupe::models
