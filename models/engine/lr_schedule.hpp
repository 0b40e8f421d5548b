// The learning rate of an optimizer step: warm-up from 0, then cosine, linear
// or constant, as the golden cases define them.
#pragma once

#include "config/settings/settings.hpp"

#include <cstdint>

namespace troupe::models {

/// Returns the optimizer steps of warm-up: a `warmup` below 1 is a share of
/// `total_steps` (rounded down), otherwise a number of steps.
std::uint64_t warmup_steps(const OptimizerSettings& settings,
                           std::uint64_t total_steps);

/// Returns the rate of step `step` (0-based, used in that step): lr * step /
/// warmup during warm-up; then lr times 0.5 (1 + cos(pi x)), 1 - x, or 1, with
/// x = (step - warmup) / (total_steps - warmup), at most 1.
double learning_rate(const OptimizerSettings& settings,
                     std::uint64_t total_steps, std::uint64_t step);

} // namespace troupe::models
