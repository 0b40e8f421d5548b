#include "actors/reward_work.hpp"

#include "actors/call_options.hpp"
#include "models/reward_rows.hpp"
#include "models/rewarders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace troupe::actors {

bool has_rewards(const plans::Workflow& workflow) {
  return std::ranges::count(workflow.calls, rewards_fn, &plans::Call::fn) > 0;
}

const plans::Call* scorer_of(const plans::Workflow& workflow,
                             const plans::Call& generates) {
  const auto scores = [&](const plans::Call& call) {
    return call.fn == rewards_fn
           && std::ranges::any_of(call.reads, [&](const std::string& key) {
                return call.argument(key) == "sequence_ids"
                       && std::ranges::count(generates.writes, key) > 0;
              });
  };
  const auto found = std::ranges::find_if(workflow.calls, scores);
  return found == workflow.calls.end() ? nullptr : &*found;
}

RewardWork::RewardWork(WorkerContext& worker)
  : worker_(worker),
    desk_([this](const Batch& batch) { return items(batch); },
          [this] {
            return models::make_rewarder(worker_.settings, worker_.run_folder);
          }),
    thread_(fmt::format("scorer {}", worker.worker.value)) {}

/// Samples of an evaluation are of its file's rows in their order.
models::AnswerSource RewardWork::source(const plans::Call& call, StepId step) {
  const Settings& settings = worker_.settings;
  auto asker = fmt::format("{} of step {}", call.name, step.value + 1);
  if (!call.evaluates) {
    if (!order_)
      order_ = models::data_order(settings, worker_.dataset().size());
    return {.data = worker_.dataset(),
            .tokenizer = worker_.tokenizer(),
            .file = settings.data.train,
            .asker = std::move(asker),
            .step = step,
            .rows = order_->batch(step.value),
            .samples_per_row
            = samples_per_row(settings, worker_.workflow, false)};
  }
  std::vector<std::uint32_t> rows(worker_.evaluation().size());
  std::iota(rows.begin(), rows.end(), 0U);
  return {.data = worker_.evaluation(),
          .tokenizer = worker_.tokenizer(),
          .file = settings.eval.data,
          .asker = std::move(asker),
          .step = step,
          .rows = std::move(rows),
          .samples_per_row = samples_per_row(settings, worker_.workflow, true)};
}

std::vector<models::RewardItem> RewardWork::items(const Batch& batch) {
  const auto& call = worker_.workflow.call(batch.call);
  return models::reward_items(source(call, batch.step), batch.rows);
}

void RewardWork::offer(const plans::Call& call, StepId step, SampleId sample,
                       std::span<const std::int32_t> ids,
                       std::span<const std::uint8_t> mask) {
  const std::vector lengths{static_cast<std::uint32_t>(ids.size())};
  Batch batch{.call = call.name, .step = step, .rows = {}};
  batch.rows.samples = {sample};
  batch.rows.add(
    net::make_column("sequence_ids", DType::i32, lengths, ids.data()));
  batch.rows.add(
    net::make_column("loss_mask", DType::u8, lengths, mask.data()));
  put(std::move(batch));
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
