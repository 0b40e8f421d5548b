// Numbers for metrics that add up: over micro-batches, mini-batches and ranks.
// A metric is sum / weight after everything was added; a maximum or minimum is
// merged as such. Names are those of INTERFACE ("actor/pg_loss").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models {

/// How two entries of one name merge.
enum class SumKind : std::uint8_t { mean, total, max, min };

struct Sum {
  std::string name;
  double sum = 0;    ///< for max and min: the extreme value
  double weight = 0; ///< what to divide by; 0 = no value yet
  SumKind kind = SumKind::mean;
  bool operator==(const Sum&) const = default;
};

/// Ordered by first mention, so that merging in rank order is deterministic.
class Sums {
public:
  /// metric = total of `sum` / total of `weight`.
  void add(std::string_view name, double sum, double weight);
  /// metric = total of `sum`.
  void add_total(std::string_view name, double sum);
  void add_max(std::string_view name, double value);
  void add_min(std::string_view name, double value);
  /// An entry as another process sent it.
  void add(const Sum& entry);
  void merge(const Sums& other);

  const std::vector<Sum>& all() const {
    return entries_;
  }
  bool empty() const {
    return entries_.empty();
  }
  bool has(std::string_view name) const;
  /// The metric's value; NaN where the name is unknown or its weight is 0.
  double value(std::string_view name) const;
  bool operator==(const Sums&) const = default;

private:
  Sum& entry(std::string_view name, SumKind kind);
  std::vector<Sum> entries_;
};

} // namespace troupe::models
