// The steps of a run as its metrics.jsonl has them, for commands that predict
// beside what was measured.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace troupe::runtime {

/// The numbers of a step by their names in metrics.jsonl.
class RecordedStep {
public:
  explicit RecordedStep(std::map<std::string, double> numbers)
    : numbers_(std::move(numbers)) {}
  /// Returns a number; 0 if the step has none of that name.
  double value(const std::string& name) const {
    const auto found = numbers_.find(name);
    return found == numbers_.end() ? 0 : found->second;
  }
  const std::map<std::string, double>& numbers() const {
    return numbers_;
  }

private:
  std::map<std::string, double> numbers_;
};

/// Returns the training steps of metrics.jsonl, in order; lines that are cut
/// off or of evaluations are left out. Throws FailureError (io) if the file
/// cannot be read.
std::vector<RecordedStep>
read_recorded_steps(const std::filesystem::path& metrics_file);

/// Returns the middle of a list that is not empty.
double median_of(std::vector<double> numbers);

} // namespace troupe::runtime
