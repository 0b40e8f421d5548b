// run.keep_best: finds the checkpoint with the best value of a metric. The
// masters of a run report metrics to it as steps and evaluations end; the
// checkpoint actor has it update the run folder's link `best` before it removes
// old checkpoints, and never removes the target of that link. Thread-safe.
#pragma once

#include "config/base/error.hpp"
#include "config/base/ids.hpp"
#include "models/rl/metric_sums.hpp"

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace troupe::actors {

class BestCheckpoint {
public:
  /// Takes the lowest value as the best for metrics whose name ends with
  /// "loss", the highest for all others.
  BestCheckpoint(std::filesystem::path run_folder, std::string metric,
                 bool evaluates = false, StepId end = StepId{0});

  const std::string& metric() const {
    return metric_;
  }
  /// Records the metric after `steps` steps, if `sums` has it.
  void consider(StepId steps, const models::MetricSums& sums);
  void consider(StepId steps, double value);
  /// Returns bad_input, naming the nearest metric, if neither a step nor (where
  /// the run has any) an evaluation has reported the metric once both have
  /// reported. Returns nothing at the end of the run, when there is little left
  /// to lose and weights to save.
  std::optional<Failure> mistake() const;
  /// Points `best` at the best of the checkpoints that exist.
  void refresh();
  /// Does the same at the end of a run, and warns if the metric never had a
  /// value.
  void finish();

private:
  std::string sentence() const; ///< message: no such metric
  bool better(double value, double than) const;

  std::filesystem::path run_folder_;
  std::string metric_;
  bool evaluates_; ///< whether the run evaluates
  StepId end_;     ///< steps of the run; 0: unknown
  mutable std::mutex mutex_;
  std::map<StepId, double> values_;
  std::set<std::string> seen_; ///< every metric reported so far
  StepId last_{0};             ///< steps at the last report
  std::optional<StepId> best_; ///< target of the link
};

} // namespace troupe::actors
