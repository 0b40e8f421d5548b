#include "models/engine/lr_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::models {

std::uint64_t warmup_steps(const OptimizerSettings& settings,
                           std::uint64_t total_steps) {
  if (settings.warmup >= 1)
    return static_cast<std::uint64_t>(settings.warmup);
  return static_cast<std::uint64_t>(std::max(settings.warmup, 0.0)
                                    * static_cast<double>(total_steps));
}

double learning_rate(const OptimizerSettings& settings,
                     std::uint64_t total_steps, std::uint64_t step) {
  const std::uint64_t warmup = warmup_steps(settings, total_steps);
  if (step < warmup)
    return settings.lr * static_cast<double>(step)
           / static_cast<double>(warmup);
  const std::uint64_t rest = total_steps > warmup ? total_steps - warmup : 1;
  const double x = std::min(1.0, static_cast<double>(step - warmup)
                                   / static_cast<double>(rest));
  if (settings.schedule == "cosine")
    return settings.lr * 0.5 * (1 + std::cos(std::numbers::pi * x));
  if (settings.schedule == "linear")
    return settings.lr * (1 - x);
  return settings.lr;
}

} // namespace troupe::models
