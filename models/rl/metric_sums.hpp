// Additive numbers for metrics: over micro-batches, mini-batches and ranks. A
// metric is sum / weight after everything was added; a maximum or minimum is
// merged as such. Names are those of metrics ("actor/pg_loss").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models {

/// Rule by which two entries of one name are merged.
enum class SumKind : std::uint8_t { mean, total, max, min };

struct Sum {
  std::string name;
  double sum = 0;    ///< max and min: the extreme value
  double weight = 0; ///< divisor; 0 = no value yet
  SumKind kind = SumKind::mean;
  bool operator==(const Sum&) const = default;
};

/// Sums ordered by first mention, so that merging in rank order is
/// deterministic.
class MetricSums {
public:
  /// Adds to a metric: total of `sum` / total of `weight`.
  void add(std::string_view name, double sum, double weight);
  /// Adds to a metric: total of `sum`.
  void add_total(std::string_view name, double sum);
  void add_max(std::string_view name, double value);
  void add_min(std::string_view name, double value);
  /// Adds an entry received from another process.
  void add(const Sum& entry);
  void merge(const MetricSums& other);

  const std::vector<Sum>& all() const {
    return entries_;
  }
  bool empty() const {
    return entries_.empty();
  }
  bool has(std::string_view name) const;
  /// Returns the metric's value; NaN if the name is unknown or its weight is 0.
  double value(std::string_view name) const;
  bool operator==(const MetricSums&) const = default;

private:
  Sum& entry(std::string_view name, SumKind kind);
  std::vector<Sum> entries_;
};

} // namespace troupe::models
