#include "actors/user/user_work.hpp"

#include "actors/user/user_actors.hpp"
#include "actors/worker_base/task_rows.hpp"
#include "models/data/sample_rows.hpp"

#include "troupe/detail/crash_context.hpp"
#include "troupe/future.hpp"
#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

std::uint32_t group_size(const WorkerContext& worker) {
  return worker.run.workflow.samples_are_prompts
           ? static_cast<std::uint32_t>(worker.run.settings.rollout.n)
           : 1;
}

double sum_of_column(const net::Column& column) {
  double sum = 0;
  const auto add = [&](const auto& values) {
    for (const auto value : values)
      sum += static_cast<double>(value);
  };
  if (column.dtype == DType::f32)
    add(column.as<float>());
  else if (column.dtype == DType::i32)
    add(column.as<std::int32_t>());
  else
    add(column.as<std::uint8_t>());
  return sum;
}

} // namespace

std::string who_of(const WorkerContext& worker, const UserEntry& user,
                   StepId step) {
  const auto what = user.actor.name.empty()
                      ? user.call.name
                      : fmt::format("user-defined actor {} in {}",
                                    user.actor.name, user.call.name);
  return fmt::format("{}, {} of step {}", worker.who, what, step_number(step));
}

std::vector<Sample> user_samples(WorkerContext& worker, StepId step,
                                 const UserEntry& user, const net::Rows& rows) {
  auto samples = models::samples_of_rows(
    rows, user.call.reads, group_size(worker), worker.data.tokenizer());
  for (Sample& sample : samples)
    sample.set_arrow({.flow = 0, .step = step.value});
  std::ranges::sort(samples, {}, &Sample::id);
  return samples;
}

void run_user_function(const WorkerContext& worker, const UserEntry& user,
                       std::vector<Sample>& samples,
                       detail::CarriedValues& carried) {
  if (user.python)
    return worker.user->python().run(worker, user, samples, carried);
  const auto run = [&](std::span<Sample> unit) {
    const CrashContext crash_context(fmt::format(
      "function {} with sample {} of step {}", user.call.name,
      unit.front().id(), step_number(StepId{unit.front().arrow().step})));
    try {
      user.call.function(unit, carried);
    } catch (...) {
      throw FailureError{
        {.code = Errc::bad_input,
         .who = fmt::format("{}, function {}", worker.who, user.call.name),
         .what = detail::text_of(std::current_exception()),
         .cause = ""}};
    }
  };
  for_each_unit(user.call.kind, samples, run);
}

void for_each_unit(detail::UserKind kind, std::span<Sample> samples,
                   const std::function<void(std::span<Sample>)>& work) {
  const auto same_unit = [&](const Sample& a, const Sample& b) {
    if (kind == detail::UserKind::each)
      return a.id() == b.id();
    return kind != detail::UserKind::groups || a.group() == b.group();
  };
  for (auto first = samples.begin(); first != samples.end();) {
    const auto end = std::find_if(first, samples.end(), [&](const Sample& s) {
      return !same_unit(*first, s);
    });
    work(std::span<Sample>(first, end));
    first = end;
  }
}

models::MetricSums user_metric_sums(const UserEntry& user,
                                    const net::Rows& rows) {
  models::MetricSums sums;
  for (const auto& metric : user.metrics) {
    const auto& column = rows.at(metric.key.name);
    sums.add(metric.name, sum_of_column(column),
             static_cast<double>(column.num_elements()));
  }
  return sums;
}

RunDone keep_user_outputs(WorkerContext& worker, StepId step,
                          const plans::Call& call, const UserEntry& user,
                          const std::vector<Sample>& samples) {
  auto rows = models::rows_of_samples(
    samples, user.call.writes, fmt::format("{}, {}", worker.who, call.name));
  return stash_outputs(worker, step, call, rename_out(call, std::move(rows)));
}

} // namespace troupe::actors
