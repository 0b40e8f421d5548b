#include "runtime/metrics/run_tables.hpp"

#include "actors/worker_base/call_options.hpp"
#include "config/settings/changed_settings.hpp"
#include "config/settings/conventions.hpp"
#include "config/settings/data_files.hpp"
#include "plans/schedule/slice_versions.hpp"
#include "plans/weights/replicas.hpp"
#include "runtime/base/human_text.hpp"
#include "runtime/base/text_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::runtime {

using Json = nlohmann::ordered_json;

namespace {

const char* plural(std::uint64_t count, const char* one, const char* many) {
  return count == 1 ? one : many;
}

/// Returns "16", or "16 or 17" if they do not divide.
std::string parts_text(std::uint64_t total, std::uint64_t parts) {
  const auto least = total / parts;
  return total % parts == 0 ? std::to_string(least)
                            : fmt::format("{} or {}", least, least + 1);
}

void add_tokens(const PlannedWork& work, TextTable& table) {
  const auto& settings = work.settings;
  const double samples = work.samples_per_step;
  if (!work.workflow.samples_are_prompts) {
    table.row({"tokens a step, at most",
               count_text(samples * settings.data.max_tokens),
               fmt::format("{} a sample", settings.data.max_tokens)});
    return;
  }
  const int longest
    = settings.data.max_prompt_tokens + settings.rollout.max_new_tokens;
  table.row(
    {"tokens a step, at most", count_text(samples * longest),
     fmt::format("{} prompt + {} new a sample", settings.data.max_prompt_tokens,
                 settings.rollout.max_new_tokens)});
}

std::string micro_batch_text(const plans::Placement& placement) {
  if (placement.micro_batches > 0)
    return fmt::format("{} parts", placement.micro_batches);
  return placement.micro_batch_tokens > 0
           ? fmt::format("{} tokens", placement.micro_batch_tokens)
           : "auto";
}

/// Adds a line per file where there are several: its rows, and how often each
/// of them comes in as many rows as all files have.
void add_sources(const PreparedRun& run, TextTable& table) {
  const auto& sources = run.data.sources;
  if (!sources)
    return;
  const auto files = train_files(run.work.settings.data);
  double weights = 0;
  for (const auto& file : files)
    weights += file.weight;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto all = static_cast<double>(run.data.num_rows);
    const auto rows = sources->usable()[i];
    const auto part = weights > 0 ? files[i].weight / weights : rows / all;
    table.row({"  from " + sources->names()[i],
               fmt::format("{:.1f} %", 100 * part),
               fmt::format("{} rows, {:.2f} passes an epoch", rows,
                           part * all / rows)});
  }
}

/// Shortens a plan or a list of texts, which may be long; config.yaml has all
/// of it.
std::string shown(const std::string& value) {
  constexpr std::size_t most = 60;
  return value.size() <= most ? value : value.substr(0, most - 3) + "...";
}

} // namespace

std::string settings_table(const Settings& settings) {
  TextTable table({"setting", "value", "default"});
  for (const auto& setting : changed_settings(settings)) {
    const auto& usual = setting.default_text;
    const bool is_empty = usual.empty() || usual == "\"\"";
    table.row({setting.path, shown(setting.value), is_empty ? "-" : usual});
  }
  for (const auto& convention : conventions_in(settings))
    table.row(
      {convention.path, convention.value, fmt::format("by {}", convention.by)});
  return table.print()
         + "all others have their defaults; the run's config.yaml holds every "
           "one\n";
}

std::string batch_table(const PreparedRun& run) {
  const auto& settings = run.work.settings;
  const auto rows = static_cast<std::uint64_t>(settings.data.batch_size);
  const std::uint64_t samples = run.work.samples_per_step;
  TextTable table({"batch", ">", ""});
  table.row(
    {"rows a step", std::to_string(rows),
     fmt::format("of {} in {}", run.data.num_rows, train_text(settings.data))});
  add_sources(run, table);
  table.row({"samples a step", std::to_string(samples),
             run.work.workflow.samples_are_prompts
               ? fmt::format("rows x rollout.n = {}", settings.rollout.n)
               : ""});
  const std::uint64_t mini_batches
    = actors::mini_batches_of(settings, run.work.workflow);
  table.row({"mini-batches", std::to_string(mini_batches),
             fmt::format("of {} samples", parts_text(samples, mini_batches))});
  for (const auto& call : run.work.workflow.calls) {
    const auto placed = run.work.plan.calls.find(call.name);
    if (call.kind != plans::CallKind::train
        || placed == run.work.plan.calls.end())
      continue;
    const auto ranks = placed->second.strategy.sample_ranks();
    table.row(
      {fmt::format("  {}, each rank", call.name),
       parts_text(std::max<std::uint64_t>(samples / mini_batches, 1), ranks),
       fmt::format("samples of a mini-batch (dp {})", ranks)});
  }
  add_tokens(run.work, table);
  const std::uint64_t epochs = actors::epochs_of(settings, run.work.workflow);
  table.row({"steps", std::to_string(run.steps.end),
             fmt::format("{:.2f} passes over the data",
                         run.data.num_rows == 0
                           ? 0.0
                           : static_cast<double>(rows) * run.steps.end
                               / static_cast<double>(run.data.num_rows))});
  table.row(
    {"optimizer steps", std::to_string(mini_batches * epochs * run.steps.end),
     fmt::format("{} mini-batches x {} epochs x steps", mini_batches, epochs)});
  return table.print();
}

std::string tables_json(const PreparedRun& run) {
  const auto& settings = run.work.settings;
  const std::uint64_t mini_batches
    = actors::mini_batches_of(settings, run.work.workflow);
  const Json batch
    = {{"rows", settings.data.batch_size},
       {"samples", run.work.samples_per_step},
       {"mini_batches", mini_batches},
       {"optimizer_steps", mini_batches * run.steps.end
                             * actors::epochs_of(settings, run.work.workflow)}};
  return Json{{"run_folder", run.attempt.folder.string()},
              {"steps", run.steps.end},
              {"first_step", run.steps.first},
              {"resume", run.attempt.resume.sentence},
              {"settings", print_settings(settings)},
              {"batch", batch},
              {"plan_name", run.work.plan_name},
              {"plan", plans::print(run.work.plan)},
              {"warnings", run.work.report.warnings}}
    .dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

namespace {

/// Returns a line for each trained role with adapters.
std::string adapters_text(const PlannedWork& work) {
  std::string text;
  for (const auto& [role, shape] : work.shapes) {
    if (!shape.lora.exists() || !work.workflow.role(role).trained)
      continue;
    double trained = 0;
    for (const auto& parameter : adapters(shape))
      trained += static_cast<double>(parameter.num_elements());
    text += fmt::format(
      "{} trains adapters of rank {}: {} parameters beside {} frozen ones\n",
      role, shape.lora.rank, count_text(trained),
      count_text(static_cast<double>(num_parameters(shape))));
  }
  return text;
}

} // namespace

std::string plan_table(const PlannedWork& work) {
  const auto& cluster = work.plan.cluster;
  TextTable table(
    {"call", "kind", "devices", "strategy", "micro-batch", ">lag"});
  for (const auto& call : work.workflow.calls) {
    const auto placed = work.plan.calls.find(call.name);
    if (placed == work.plan.calls.end() || placed->second.devices.empty()) {
      table.row({call.name, std::string(to_string(call.kind)), "host"});
      continue;
    }
    const auto& placement = placed->second;
    const auto lag = work.plan.lag_of(call.name);
    table.row({call.name, std::string(to_string(call.kind)),
               plans::print_devices(placement.devices),
               to_string(placement.strategy), micro_batch_text(placement),
               std::to_string(lag)});
  }
  std::string text = fmt::format(
    "plan {}: {} {}, {} {}, {} {}\n", work.plan_name, cluster.nodes,
    plural(cluster.nodes, "node", "nodes"), cluster.num_workers(),
    plural(cluster.num_workers(), "worker", "workers"), cluster.num_devices(),
    plural(cluster.num_devices(), "device", "devices"));
  text += table.print();
  text += plans::slices_text(work.plan, work.settings.rollout.max_new_tokens);
  for (const auto& line : work.plan_why)
    text += line + "\n";
  text += adapters_text(work);
  const auto replicas = plans::replicas_of(work.workflow, work.plan);
  for (const auto& replica : replicas.all)
    if (const auto& ema = work.workflow.role(replica.role).ema)
      text += fmt::format(
        "weights of {} on devices {} follow {} {}, ema_decay "
        "{}\n",
        replica.role, plans::print_devices(replica.devices), ema->role,
        ema->every == 1 ? "each step"
                        : fmt::format("every {} steps", ema->every),
        ema->decay);
    else if (!replica.home)
      text += fmt::format(
        "{} of {} move to devices {} each step\n",
        work.shapes.at(replica.role).lora.exists() ? "adapters" : "weights",
        replica.role, plans::print_devices(replica.devices));
  return text;
}

} // namespace troupe::runtime
