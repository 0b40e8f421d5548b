#include "actors/user/reward_work.hpp"

#include "actors/worker_base/call_options.hpp"
#include "config/settings/data_files.hpp"
#include "models/rewards/reward_rows.hpp"
#include "models/rewards/rewarders.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

/// Returns the names of the files that responses are to, for messages.
std::vector<std::string> file_names(const Settings& settings, bool evaluates) {
  if (evaluates)
    return {settings.eval.data};
  std::vector<std::string> names;
  for (const auto& file : train_files(settings.data))
    names.push_back(file.path);
  return names;
}

} // namespace

bool has_rewards(const plans::Workflow& workflow) {
  return std::ranges::count(workflow.calls, rewards_fn, &plans::Call::fn) > 0;
}

RewardWork::RewardWork(WorkerContext& worker)
  : worker_(worker),
    queue_([this](const Batch& batch) { return items(batch); },
           [this] {
             auto settings = worker_.run.settings;
             auto& file = settings.reward.file;
             file = worker_.run.files->local(file);
             return models::make_rewarder(settings, worker_.run.folder);
           }),
    thread_(fmt::format("scorer {}", worker.worker.value)) {}

models::ResponseSource RewardWork::source(const plans::Call& call,
                                          StepId step) {
  const Settings& settings = worker_.run.settings;
  const bool evaluates = call.evaluates;
  return {
    .data = evaluates ? worker_.data.evaluation() : worker_.data.dataset(),
    .tokenizer = worker_.data.tokenizer(),
    .files = file_names(settings, evaluates),
    .requester = fmt::format("{} of step {}", call.name, step_number(step)),
    .step = step,
    .rows = worker_.data.rows_of(call, step),
    .samples_per_row
    = samples_per_row(settings, worker_.run.workflow, evaluates)};
}

std::vector<models::RewardItem> RewardWork::items(const Batch& batch) {
  const auto& call = worker_.run.workflow.call(batch.call);
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
             auto [items, replies] = scored();
             auto result = models::reward_rows(
               samples, items, std::move(replies), worker_.run.settings);
             if (evaluates) // metrics of rewards are those of training
               result.sums = {};
             return result;
           });
         }});
}

void RewardWork::put(Batch batch) {
  if (queue_.put(std::move(batch)))
    thread_.post([this] { serve(); });
}

/// Scores responses; each score counts as progress of the worker.
void RewardWork::serve() {
  std::optional<trace::Span> span;
  if (const auto next = queue_.next())
    span.emplace(thread_.track(), trace::name(next->first), next->second.value);
  auto& progress = worker_.threads.devices.begin()->second->progress();
  queue_.serve(&thread_.stop_flag(), [&] { ++progress; });
}

} // namespace troupe::actors
