// run.keep_best: which checkpoint has the best value of a metric. The masters
// of a run tell it numbers as steps and evaluations end; the checkpoint actor
// lets it point the run folder's link `best` before it removes old checkpoints,
// and the target of that link stays. Thread-safe.
#pragma once

#include "config/error.hpp"
#include "config/ids.hpp"
#include "models/sums.hpp"

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace troupe::actors {

class BestCheckpoint {
public:
  /// Lowest values are best of metrics whose name ends with "loss", highest of
  /// all others.
  BestCheckpoint(std::filesystem::path run_folder, std::string metric,
                 bool evaluates = false, StepId end = StepId{0});

  const std::string& metric() const {
    return metric_;
  }
  /// The metric after `steps` steps, if it is one of `sums`.
  void consider(StepId steps, const models::Sums& sums);
  void consider(StepId steps, double value);
  /// That the metric was not among those of a step and, where the run has any,
  /// an evaluation, once both were told: bad_input, naming the nearest. Nothing
  /// at the end, where the run has little to lose and weights to save.
  std::optional<Failure> mistake() const;
  /// Points `best` at the best of the checkpoints that are there.
  void refresh();
  /// The same at the end of a run; a warning where no value was ever seen.
  void finish();

private:
  std::string sentence() const; ///< that there is no such metric
  bool better(double value, double than) const;

  std::filesystem::path run_folder_;
  std::string metric_;
  bool evaluates_; ///< the run does
  StepId end_;     ///< steps of the run; 0: not known
  mutable std::mutex mutex_;
  std::map<StepId, double> values_;
  std::set<std::string> seen_; ///< every metric that was told
  StepId last_{0};             ///< steps when the last of them was
  std::optional<StepId> best_; ///< that the link points at
};

} // namespace troupe::actors
