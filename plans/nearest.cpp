#include "plans/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace troupe::plans {

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

} // namespace

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

std::string nearest_hint(std::string_view name,
                         std::span<const std::string> valid) {
  const auto best = nearest(name, valid);
  return best.empty() ? "" : "; try '" + best + "'";
}

} // namespace troupe::plans
