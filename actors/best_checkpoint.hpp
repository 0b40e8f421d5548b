// run.keep_best: which checkpoint has the best value of a metric. The masters
// of a run tell it numbers as steps and evaluations end; the checkpoint actor
// lets it point the run folder's link `best` before it removes old checkpoints,
// and the target of that link stays. Thread-safe.
#pragma once

#include "config/ids.hpp"
#include "models/sums.hpp"

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::actors {

class BestCheckpoint {
public:
  /// Lowest values are best of metrics whose name ends with "loss", highest of
  /// all others.
  BestCheckpoint(std::filesystem::path run_folder, std::string metric);

  const std::string& metric() const {
    return metric_;
  }
  /// The metric after `steps` steps, if it is one of `sums`.
  void consider(StepId steps, const models::Sums& sums);
  void consider(StepId steps, double value);
  /// Points `best` at the best of the checkpoints that are there.
  void refresh();
  /// The same at the end of a run; a warning where no value was ever seen.
  void finish();

private:
  bool better(double value, double than) const;

  std::filesystem::path run_folder_;
  std::string metric_;
  mutable std::mutex mutex_;
  std::map<StepId, double> values_;
  std::optional<StepId> best_; ///< that the link points at
};

} // namespace troupe::actors
