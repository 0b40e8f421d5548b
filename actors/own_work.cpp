#include "actors/own_work.hpp"

#include "actors/shard_work.hpp"
#include "models/sample_rows.hpp"

#include "troupe/at_work.hpp"
#include "troupe/future.hpp"
#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

std::uint32_t group_size(const WorkerContext& worker) {
  return worker.workflow.samples_are_prompts
           ? static_cast<std::uint32_t>(worker.settings.rollout.n)
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

std::string who_of(const WorkerContext& worker, const OwnEntry& own,
                   StepId step) {
  const auto what
    = own.actor.name.empty()
        ? own.call.name
        : fmt::format("own actor {} in {}", own.actor.name, own.call.name);
  return fmt::format("{}, {} of step {}", worker.who, what, step_number(step));
}

std::vector<Sample> own_samples(WorkerContext& worker, StepId step,
                                const OwnEntry& own, const net::Rows& rows) {
  auto samples = models::samples_of_rows(
    rows, own.call.reads, group_size(worker), worker.tokenizer());
  for (Sample& sample : samples)
    sample.set_arrow({.flow = 0, .step = step.value});
  std::ranges::sort(samples, {}, &Sample::id);
  return samples;
}

void run_own_function(const WorkerContext& worker, const OwnEntry& own,
                      std::vector<Sample>& samples,
                      detail::CarriedValues& carried) {
  const auto run = [&](std::span<Sample> unit) {
    const AtWork at_work(fmt::format(
      "function {} with sample {} of step {}", own.call.name, unit.front().id(),
      step_number(StepId{unit.front().arrow().step})));
    try {
      own.call.function(unit, carried);
    } catch (...) {
      throw FailureError{
        {.code = Errc::bad_input,
         .who = fmt::format("{}, function {}", worker.who, own.call.name),
         .what = detail::text_of(std::current_exception()),
         .cause = ""}};
    }
  };
  for_each_unit(own.call.kind, samples, run);
}

void for_each_unit(detail::OwnKind kind, std::span<Sample> samples,
                   const std::function<void(std::span<Sample>)>& work) {
  const auto same_unit = [&](const Sample& a, const Sample& b) {
    if (kind == detail::OwnKind::each)
      return a.id() == b.id();
    return kind != detail::OwnKind::groups || a.group() == b.group();
  };
  for (auto first = samples.begin(); first != samples.end();) {
    const auto end = std::find_if(first, samples.end(), [&](const Sample& s) {
      return !same_unit(*first, s);
    });
    work(std::span<Sample>(first, end));
    first = end;
  }
}

models::Sums own_metric_sums(const OwnEntry& own, const net::Rows& rows) {
  models::Sums sums;
  for (const auto& metric : own.metrics) {
    const auto& column = rows.at(metric.key.name);
    sums.add(metric.name, sum_of_column(column),
             static_cast<double>(column.num_elements()));
  }
  return sums;
}

RunDone keep_own_outputs(WorkerContext& worker, StepId step,
                         const plans::Call& call, const OwnEntry& own,
                         const std::vector<Sample>& samples) {
  auto rows = models::rows_of_samples(
    samples, own.call.writes, fmt::format("{}, {}", worker.who, call.name));
  return stash_outputs(worker, step, call, rename_out(call, std::move(rows)));
}

} // namespace troupe::actors
