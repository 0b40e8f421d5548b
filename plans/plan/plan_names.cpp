#include "plans/plan/plan_names.hpp"

#include "config/base/did_you_mean.hpp"

namespace troupe::plans {

std::string nearest(std::string_view name, std::span<const std::string> valid) {
  return nearest_word(name, {valid.begin(), valid.end()});
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
