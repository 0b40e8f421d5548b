#include "actors/reward_work.hpp"

#include "actors/call_options.hpp"
#include "models/reward_rows.hpp"
#include "models/rewarders.hpp"

#include <fmt/format.h>

#include <numeric>

namespace troupe::actors {

RewardWork::RewardWork(WorkerContext& worker)
  : worker_(worker),
    thread_(fmt::format("scorer {}", worker.worker.value)) {}

/// Samples of an evaluation are of its file's rows in their order.
models::AnswerSource RewardWork::source(const plans::Call& call, StepId step) {
  const Settings& settings = worker_.settings;
  if (!call.evaluates)
    return {.data = worker_.dataset(),
            .tokenizer = worker_.tokenizer(),
            .file = settings.data.train,
            .step = step,
            .rows = order_->batch(step.value),
            .samples_per_row
            = samples_per_row(settings, worker_.workflow, false)};
  std::vector<std::uint32_t> rows(worker_.evaluation().size());
  std::iota(rows.begin(), rows.end(), 0U);
  return {.data = worker_.evaluation(),
          .tokenizer = worker_.tokenizer(),
          .file = settings.eval.data,
          .step = step,
          .rows = std::move(rows),
          .samples_per_row = samples_per_row(settings, worker_.workflow, true)};
}

models::FunctionResult RewardWork::run(const plans::Call& call, StepId step,
                                       const net::Rows& rows) {
  const Settings& settings = worker_.settings;
  if (!rewarder_) {
    order_ = models::data_order(settings, worker_.dataset().size());
    rewarder_ = models::make_rewarder(settings, worker_.run_folder);
  }
  const auto items = models::reward_items(source(call, step), rows);
  // a score is progress of the worker as any device's is
  auto& progress = worker_.devices.begin()->second->progress();
  auto answers = rewarder_->score(items, {.stop = &worker_.host->stop_flag(),
                                          .progress = [&] { ++progress; }});
  auto result
    = models::reward_rows(rows.samples, items, std::move(answers), settings);
  if (call.evaluates) // metrics of rewards are those of training
    result.sums = {};
  return result;
}

} // namespace troupe::actors
