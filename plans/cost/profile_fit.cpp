#include "plans/cost/profile_fit.hpp"

#include <algorithm>

namespace troupe::plans {

WorkLine fit_work(std::span<const TimedWork> measured) {
  // least squares of relative errors: weights 1 / seconds^2
  double w = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [amount, seconds] : measured) {
    const auto weight = 1 / (seconds * seconds);
    w += weight;
    x += weight * amount;
    y += weight * seconds;
    xx += weight * amount * amount;
    xy += weight * amount * seconds;
  }
  if (xx <= 0)
    return {};
  const auto spread = w * xx - x * x;
  const auto slope = spread > 1e-9 * w * xx ? (w * xy - x * y) / spread : 0.0;
  const auto fixed_s = (y - slope * x) / w;
  if (slope <= 0 || fixed_s < 0)
    return {.fixed_s = 0, .rate = xx / xy};
  return {.fixed_s = fixed_s, .rate = 1 / slope};
}

std::vector<std::uint32_t> profile_sizes(std::uint32_t most) {
  std::vector<std::uint32_t> sizes = {1};
  if (most > 1)
    sizes.push_back(most);
  for (std::uint64_t size = 4; size < most; size *= 4)
    sizes.push_back(static_cast<std::uint32_t>(size));
  return sizes;
}

} // namespace troupe::plans
