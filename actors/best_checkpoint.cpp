#include "actors/best_checkpoint.hpp"

#include "actors/checkpoint_files.hpp"
#include "config/log.hpp"

#include <cmath>

namespace troupe::actors {

BestCheckpoint::BestCheckpoint(std::filesystem::path run_folder,
                               std::string metric)
  : run_folder_(std::move(run_folder)),
    metric_(std::move(metric)) {}

void BestCheckpoint::consider(StepId steps, const models::Sums& sums) {
  if (sums.has(metric_))
    consider(steps, sums.value(metric_));
}

void BestCheckpoint::consider(StepId steps, double value) {
  const std::lock_guard lock{mutex_};
  if (std::isfinite(value))
    values_[steps] = value;
}

bool BestCheckpoint::better(double value, double than) const {
  return metric_.ends_with("loss") ? value < than : value > than;
}

void BestCheckpoint::refresh() {
  const std::lock_guard lock{mutex_};
  const std::pair<const StepId, double>* best = nullptr;
  for (const auto& entry : values_)
    if (has_checkpoint(run_folder_, entry.first)
        && (best == nullptr || better(entry.second, best->second)))
      best = &entry;
  if (best == nullptr || best_ == best->first)
    return;
  best_ = best->first;
  point_link(run_folder_, best_link, checkpoint_name(*best_));
}

void BestCheckpoint::finish() {
  refresh();
  const std::lock_guard lock{mutex_};
  if (values_.empty())
    log::actors.warn("run.keep_best: no step had a metric " + metric_);
}

} // namespace troupe::actors
