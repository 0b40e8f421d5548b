#include "models/rl/metric_sums.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <limits>

namespace troupe::models {

Sum& MetricSums::entry(std::string_view name, SumKind kind) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Sum& e) { return e.name == name; });
  if (found == entries_.end())
    return entries_.emplace_back(Sum{std::string(name), 0, 0, kind});
  TROUPE_CHECK(found->kind == kind, "one kind a metric: " + found->name);
  return *found;
}

void MetricSums::add(std::string_view name, double sum, double weight) {
  add(Sum{std::string(name), sum, weight, SumKind::mean});
}

void MetricSums::add_total(std::string_view name, double sum) {
  add(Sum{std::string(name), sum, 1, SumKind::total});
}

void MetricSums::add_max(std::string_view name, double value) {
  add(Sum{std::string(name), value, 1, SumKind::max});
}

void MetricSums::add_min(std::string_view name, double value) {
  add(Sum{std::string(name), value, 1, SumKind::min});
}

void MetricSums::add(const Sum& other) {
  Sum& mine = entry(other.name, other.kind);
  const bool extreme = other.kind == SumKind::max || other.kind == SumKind::min;
  if (!extreme) {
    mine.sum += other.sum;
  } else if (other.weight > 0) {
    const bool first = mine.weight == 0;
    const double better = other.kind == SumKind::max
                            ? std::max(mine.sum, other.sum)
                            : std::min(mine.sum, other.sum);
    mine.sum = first ? other.sum : better;
  }
  mine.weight += other.weight;
}

void MetricSums::merge(const MetricSums& other) {
  for (const Sum& e : other.entries_)
    add(e);
}

bool MetricSums::has(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Sum& e) { return e.name == name; });
}

double MetricSums::value(std::string_view name) const {
  for (const Sum& e : entries_) {
    if (e.name != name || e.weight == 0)
      continue;
    return e.kind == SumKind::mean ? e.sum / e.weight : e.sum;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

} // namespace troupe::models
