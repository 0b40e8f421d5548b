// The numbers of one step under the names of INTERFACE ("Metric names"), in
// the order in which metrics.jsonl has them.
#pragma once

#include "runtime/jsonl_file.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::runtime {

using NamedNumbers = std::vector<std::pair<std::string, double>>;

struct StepMetrics {
  std::uint32_t step = 0; ///< committed steps, this one included: 1, 2, ..
  std::uint32_t attempt = 1;
  NamedNumbers values;               ///< what this run can compute, any order
  std::vector<std::string> own = {}; ///< those that an own workflow names

  std::optional<double> find(std::string_view name) const;
  void set(std::string name, double value); ///< replaces or adds
};

/// One line of metrics.jsonl: `step`, then the names in INTERFACE's order, then
/// others as given. Counts are integers; a number that is not finite is null.
/// Adds training/global_step and training/attempt.
std::string metrics_line(const StepMetrics& metrics);

/// What the last line of `step` in a metrics.jsonl says; nothing but the step
/// where there is none.
StepMetrics last_metrics(const std::filesystem::path& file, std::uint32_t step);

class MetricsFile {
public:
  explicit MetricsFile(const std::filesystem::path& path) : file_(path) {}
  void write(const StepMetrics& metrics) {
    file_.append(metrics_line(metrics));
  }

private:
  JsonlFile file_;
};

} // namespace troupe::runtime
