// The numbers of one step under their names in docs/interface.md, in
// the order in which metrics.jsonl has them.
#pragma once

#include "runtime/base/jsonl_file.hpp"

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
  std::uint32_t step = 0; ///< committed steps, including this one: 1, 2, ...
  std::uint32_t attempt = 1;
  NamedNumbers values; ///< numbers that this run can compute, in any order
  std::vector<std::string> user = {}; ///< metrics of a user-defined workflow

  std::optional<double> find(std::string_view name) const;
  void set(std::string name, double value); ///< replaces or adds
};

/// Returns one line of metrics.jsonl: `step`, then the names
/// (docs/interface.md) in their order, then others as given. Counts are
/// integers; a number that is not finite is null. Adds training/global_step and
/// training/attempt.
std::string metrics_line(const StepMetrics& metrics);

/// Returns the numbers in the last line of `step` in a metrics.jsonl; only the
/// step if there is none.
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
