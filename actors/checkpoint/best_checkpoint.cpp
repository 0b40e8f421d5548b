#include "actors/checkpoint/best_checkpoint.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "config/base/did_you_mean.hpp"
#include "config/base/error.hpp"
#include "config/base/log.hpp"

#include <fmt/format.h>

#include <cmath>

namespace troupe::actors {

namespace {

constexpr std::string_view core = "val-core/"; ///< prefix of evaluations'
                                               ///< metrics

/// Returns the metric that the setting means: the console prints an
/// evaluation's metrics without their first part, so either spelling may be
/// used.
std::string meant_metric(const std::string& word,
                         const std::vector<std::string>& metrics) {
  const auto whole = std::string(core) + word;
  const auto plain = nearest_word(word, metrics);
  const auto evaluated = nearest_word(whole, metrics);
  return edit_distance(whole, evaluated) < edit_distance(word, plain)
           ? evaluated
           : plain;
}

} // namespace

BestCheckpoint::BestCheckpoint(std::filesystem::path run_folder,
                               std::string metric, bool evaluates, StepId end)
  : run_folder_(std::move(run_folder)),
    metric_(std::move(metric)),
    evaluates_(evaluates),
    end_(end) {}

void BestCheckpoint::consider(StepId steps, const models::MetricSums& sums) {
  {
    const std::lock_guard lock{mutex_};
    last_ = steps;
    for (const auto& entry : sums.all())
      seen_.insert(entry.name);
  }
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

std::string BestCheckpoint::sentence() const {
  const auto meant = meant_metric(metric_, {seen_.begin(), seen_.end()});
  return expectation("a metric of this run", fmt::format("'{}'", metric_),
                     meant.empty() ? "" : fmt::format("'{}'", meant));
}

std::optional<Failure> BestCheckpoint::mistake() const {
  const std::lock_guard lock{mutex_};
  const auto of_evaluations = std::ranges::count_if(
    seen_, [](const auto& name) { return name.starts_with(core); });
  const bool all_told
    = std::ssize(seen_) > of_evaluations && (of_evaluations > 0 || !evaluates_);
  if (!all_told || last_ == end_ || seen_.contains(metric_) || !values_.empty())
    return std::nullopt;
  return Failure{.code = Errc::bad_input,
                 .who = "run.keep_best",
                 .what = sentence(),
                 .cause = ""};
}

void BestCheckpoint::finish() {
  refresh();
  const std::lock_guard lock{mutex_};
  if (values_.empty())
    log::actors.warn("run.keep_best: " + sentence());
}

} // namespace troupe::actors
