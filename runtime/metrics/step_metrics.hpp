// The numbers of one step under the names of INTERFACE ("Metric names"), in
// the order in which they are written; metrics.jsonl and samples.jsonl.
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
  NamedNumbers values; ///< what this run can compute, any order

  std::optional<double> find(std::string_view name) const;
  void set(std::string name, double value); ///< replaces or adds
};

/// One line of metrics.jsonl: `step`, then the names in INTERFACE's order, then
/// others as given. Counts are integers; a number that is not finite is null.
/// Adds training/global_step and training/attempt.
std::string metrics_line(const StepMetrics& metrics);

class MetricsFile {
public:
  explicit MetricsFile(const std::filesystem::path& path) : file_(path) {}
  void write(const StepMetrics& metrics) {
    file_.append(metrics_line(metrics));
  }

private:
  JsonlFile file_;
};

/// One sample as samples.jsonl shows it.
struct SampleLine {
  std::uint32_t step = 0; ///< 1, 2, ..
  std::uint32_t attempt = 1;
  std::uint32_t sample = 0; ///< SampleId of the step
  std::uint32_t row = 0;    ///< of the data file, from 0
  std::string prompt;
  std::string response;
  std::string finish_reason; ///< eos, length, ..; empty: left out
  /// What `run.replay` needs; empty: left out.
  std::vector<std::int32_t> prompt_ids;
  std::vector<std::int32_t> response_ids;
  std::vector<float> logprobs; ///< of response_ids
  NamedNumbers numbers;        ///< score, reward, kl, response_length, ..
};
std::string sample_line(const SampleLine& sample);

class SamplesFile {
public:
  explicit SamplesFile(const std::filesystem::path& path) : file_(path) {}
  void write(const SampleLine& sample) {
    file_.append(sample_line(sample));
  }

private:
  JsonlFile file_;
};

} // namespace troupe::runtime
