#include "plans/nearest.hpp"

#include "config/nearest.hpp"

#include <algorithm>

namespace troupe::plans {

std::string nearest(std::string_view name, std::span<const std::string> valid) {
  std::string best;
  auto best_distance = static_cast<std::size_t>(-1);
  for (const auto& candidate : valid) {
    const auto distance = edit_distance(name, candidate);
    const auto longer = std::max(name.size(), candidate.size());
    if (2 * distance <= longer && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string quoted_nearest(std::string_view name,
                           std::span<const std::string> valid) {
  const auto best = nearest(name, valid);
  return best.empty() ? "" : "'" + best + "'";
}

std::string nearest_hint(std::string_view name,
                         std::span<const std::string> valid) {
  const auto best = quoted_nearest(name, valid);
  return best.empty() ? "" : "; try " + best;
}

} // namespace troupe::plans
