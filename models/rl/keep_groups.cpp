#include "models/rl/keep_groups.hpp"

#include "config/settings/settings.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace troupe::models {

namespace {

constexpr const char* kept_groups_name = "kept_groups";
constexpr float equal_rewards = 1e-6F;

/// Returns whether two rewards of a group differ.
bool have_different_rewards(std::span<const float> scores) {
  float least = INFINITY;
  float most = -INFINITY;
  for (const float score : scores) {
    if (std::isnan(score))
      continue;
    least = std::min(least, score);
    most = std::max(most, score);
  }
  return most - least > equal_rewards;
}

/// Returns the groups that earlier rounds of the step have kept.
double kept_before(const net::Rows& rows, const FunctionContext& context) {
  const bool first_round
    = rows.samples.empty() || rows.samples.front() == SampleId{0};
  const auto kept = context.carried.find(kept_groups_name);
  return first_round || kept == context.carried.end() ? 0 : kept->second;
}

} // namespace

FunctionResult keep_groups(const net::Rows& rows,
                           const FunctionContext& context) {
  const auto scores = rows.at("scores").as<float>();
  const auto size = static_cast<std::size_t>(context.settings.rollout.n);
  const double wanted = context.settings.data.batch_size;
  double kept = kept_before(rows, context);
  double alike = 0;
  double beyond = 0;
  FunctionResult result;
  for (std::size_t first = 0; first < scores.size(); first += size) {
    if (!have_different_rewards(scores.subspan(first, size))) {
      ++alike;
    } else if (kept == wanted) {
      ++beyond;
    } else {
      ++kept;
      const auto from
        = rows.samples.begin() + static_cast<std::ptrdiff_t>(first);
      result.rows.samples.insert(result.rows.samples.end(), from,
                                 from + static_cast<std::ptrdiff_t>(size));
    }
  }
  result.carried = context.carried;
  result.carried[kept_groups_name] = kept;
  result.sums.add_total("rollout/rounds", 1);
  result.sums.add_total("rollout/groups_alike", alike);
  result.sums.add_total("rollout/groups_beyond", beyond);
  return result;
}

FunctionEntry keep_groups_entry() {
  return {.name = "keep_groups",
          .function = &keep_groups,
          .reads = {{"scores"}},
          .carries = {{{kept_groups_name}}}};
}

} // namespace troupe::models
