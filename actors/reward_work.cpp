#include "actors/reward_work.hpp"

#include "actors/call_options.hpp"
#include "models/reward_rows.hpp"
#include "models/rewarders.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

bool has_rewards(const plans::Workflow& workflow) {
  return std::ranges::count(workflow.calls, rewards_fn, &plans::Call::fn) > 0;
}

RewardWork::RewardWork(WorkerContext& worker)
  : worker_(worker),
    desk_([this](const Batch& batch) { return items(batch); },
          [this] {
            return models::make_rewarder(worker_.settings, worker_.run_folder);
          }),
    thread_(fmt::format("scorer {}", worker.worker.value)) {}

models::AnswerSource RewardWork::source(const plans::Call& call, StepId step) {
  const Settings& settings = worker_.settings;
  const bool evaluates = call.evaluates;
  return {.data = evaluates ? worker_.evaluation() : worker_.dataset(),
          .tokenizer = worker_.tokenizer(),
          .file = evaluates ? settings.eval.data : settings.data.train,
          .asker = fmt::format("{} of step {}", call.name, step_number(step)),
          .step = step,
          .rows = worker_.data_rows(call, step),
          .samples_per_row
          = samples_per_row(settings, worker_.workflow, evaluates)};
}

std::vector<models::RewardItem> RewardWork::items(const Batch& batch) {
  const auto& call = worker_.workflow.call(batch.call);
  return models::reward_items(source(call, batch.step), batch.rows);
}

void RewardWork::offer(const plans::Call& call, StepId step, net::Rows rows) {
  put({.call = call.name, .step = step, .rows = std::move(rows)});
}

void RewardWork::run(const plans::Call& call, StepId step, net::Rows rows,
                     std::function<void(const GetRewards&)> on_rewards) {
  auto samples = rows.samples;
  put({.call = call.name,
       .step = step,
       .rows = std::move(rows),
       .on_scored
       = [this, samples = std::move(samples), on_rewards,
          evaluates = call.evaluates](const models::GetScored& scored) {
           on_rewards([&] {
             auto [items, answers] = scored();
             auto result = models::reward_rows(
               samples, items, std::move(answers), worker_.settings);
             if (evaluates) // metrics of rewards are those of training
               result.sums = {};
             return result;
           });
         }});
}

void RewardWork::put(Batch batch) {
  if (desk_.put(std::move(batch)))
    thread_.post([this] { serve(); });
}

/// A score is progress of the worker as any device's is.
void RewardWork::serve() {
  std::optional<trace::Span> span;
  if (const auto next = desk_.next())
    span.emplace(thread_.track(), trace::name(next->first), next->second.value);
  auto& progress = worker_.devices.begin()->second->progress();
  desk_.serve(&thread_.stop_flag(), [&] { ++progress; });
}

} // namespace troupe::actors
