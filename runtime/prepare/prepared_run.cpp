#include "runtime/prepare/prepared_run.hpp"

#include "actors/worker_base/call_options.hpp"
#include "actors/worker_base/open_files.hpp"
#include "config/base/error.hpp"
#include "models/data/dataset.hpp"
#include "net/base/open_files.hpp"
#include "runtime/base/host_memory.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/planner/user_plan.hpp"
#include "runtime/run_folder/run_folder.hpp"
#include "runtime/run_folder/session_inputs.hpp"
#include "runtime/trace/run_graph.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

/// Returns the steps of the whole run; an epoch that ends within a step counts
/// as whole.
std::uint32_t steps_of(const Settings& settings, std::uint64_t num_rows) {
  if (settings.run.steps > 0)
    return static_cast<std::uint32_t>(settings.run.steps);
  const auto batch
    = static_cast<std::uint64_t>(settings.data.batch_size)
      * static_cast<std::uint64_t>(settings.algorithm.group.rounds);
  const auto rows = num_rows * static_cast<std::uint64_t>(settings.run.epochs);
  return static_cast<std::uint32_t>((rows + batch - 1) / batch);
}

RunData open_data(const PlannedWork& work, const RunInputs& inputs) {
  RunData data;
  data.rows = open_rows(work.settings, work.workflow, work.shapes, inputs,
                        RunFolder(run_folder_of(work.settings)));
  data.num_rows = data.rows.data->size();
  data.bad_rows = data.rows.data->report().bad_rows;
  models::SourceRows sources(work.settings, data.rows.data->report().usable);
  if (!sources.is_one())
    data.sources = std::move(sources);
  return data;
}

/// Checks everything that would make the run fail later.
void check_work(const PlannedWork& work, std::uint32_t num_steps,
                RunData& data) {
  plans::require_ok(work.report, places_of_plan(work.settings, work.plan_name));
  actors::check_open_files(actors::open_files_needed(work.workflow, work.plan),
                           work.plan.cluster.num_workers(),
                           net::open_file_limit());
  check_evaluation(work.settings, work.workflow, work.plan, work.shapes);
  data.texts = check_ptx(work.settings, work.workflow, work.shapes);
  check_reward(work.settings, work.workflow);
  check_replay(work.settings, work.workflow, num_steps, work.samples_per_step);
}

/// Warns of uneven mini-batches: an optimizer step of fewer samples has the
/// same weight as one of more.
std::optional<std::string> uneven_mini_batches(const PlannedWork& work) {
  const std::uint32_t samples = work.samples_per_step;
  const auto parts = static_cast<std::uint32_t>(
    actors::mini_batches_of(work.settings, work.workflow));
  if (parts == 0 || samples % parts == 0)
    return std::nullopt;
  return fmt::format("algorithm.mini_batches: {} samples a step do not divide "
                     "into {}: mini-batches have {} or {}",
                     samples, parts, samples / parts, samples / parts + 1);
}

/// Returns whether so many bytes of snapshots fit beside the run: devices of
/// the CPU share their host's memory.
bool fits_beside(const PlannedWork& work, std::uint64_t snapshot_bytes) {
  std::map<std::uint32_t, std::uint64_t> used;
  if (work.settings.cluster.device != "gpu")
    for (const auto& device : work.report.devices)
      used[work.plan.cluster.node_of(device.device)] += device.peak_bytes;
  std::uint64_t most = 0;
  for (const auto& [node, bytes] : used)
    most = std::max(most, bytes);
  constexpr double usable = 0.8; // of a host's memory, for all that it holds
  const auto limit = static_cast<double>(host_memory_bytes()) * usable;
  return static_cast<double>(most + snapshot_bytes) <= limit;
}

/// Sets the steps between snapshots, by itself 1 where they fit, and whether
/// they are copied to other nodes, where the copies fit too.
void decide_snapshots(PreparedRun& run) {
  auto& work = run.work;
  const auto& bytes = work.report.snapshots;
  run.steps.snapshot_every = static_cast<std::uint32_t>(
    work.settings.run.snapshot_every.value_or(fits_beside(work, bytes.own)));
  const bool can_copy
    = run.steps.snapshot_every > 0 && work.plan.cluster.nodes > 1;
  run.steps.copies_snapshots = can_copy && fits_beside(work, bytes.with_copies);
  if (can_copy && !run.steps.copies_snapshots)
    work.report.warnings.emplace_back(
      "run.snapshot_every: the hosts have no room for copies of each other's "
      "snapshots: a lost host costs the steps since the last checkpoint");
}

/// Returns whether a worker of an older attempt may live on and write: one that
/// no signal of this master reaches.
bool may_have_stale_writers(const PlannedWork& work) {
  return work.plan.cluster.nodes > 1
         || work.settings.cluster.launcher == "manual";
}

/// Writes attempts/NN/ and cuts the run's lines back to its first step.
void write_attempt(const PreparedRun& run, const RunFolder& folder,
                   const std::string& config) {
  if (run.attempt.continues() && run.attempt.is_checked)
    folder.set_aside_after(run.steps.first); // they were found damaged
  const auto attempt = folder.attempt_folder(run.attempt.number);
  fs::create_directories(attempt);
  replace_file(attempt / "config.yaml", config);
  replace_file(attempt / "plan.yaml", plans::print(run.work.plan));
  cut_back(folder.metrics_file(), run.steps.first);
  if (may_have_stale_writers(run.work)) // metrics are this process's alone
    replace_by_copy(folder.samples_file());
  cut_back(folder.samples_file(), run.steps.first);
}

} // namespace

PreparedRun prepare(const Settings& settings, MeasuredNow measured) {
  PreparedRun run;
  auto& work = run.work;
  work = plan_work(settings, measured);
  const auto notes = check_models(work.settings, work.workflow, work.shapes);
  models::require_data_file(work.settings);
  auto inputs = inputs_of(work.settings, work.workflow);
  run.data = open_data(work, inputs);
  run.steps.end = steps_of(settings, run.data.num_rows);
  work.settings.run.steps = static_cast<int>(run.steps.end);
  work.settings.run.epochs = 0;
  check_work(work, run.steps.end, run.data);
  if (!settings.run.max_time.empty())
    run.steps.max_time = std::chrono::duration<double>(
      parse_duration_s(settings.run.max_time).value_or(0));
  decide_snapshots(run);
  run.attempt = plan_attempt(work, std::move(inputs), run.steps.end);
  run.steps.first = run.attempt.resume.first_step;
  if (auto warning = uneven_mini_batches(work))
    work.report.warnings.push_back(std::move(*warning));
  if (run.steps.first == 0) // otherwise the checkpoint has them
    for (const auto& sentence : notes)
      work.report.warnings.push_back(sentence);
  return run;
}

std::shared_ptr<RunLock> begin_attempt(const PreparedRun& run) {
  const RunFolder folder(run.attempt.folder);
  if (run.attempt.resume.action == ResumeAction::rename_old)
    folder.rename_old();
  folder.create();
  auto lock = std::make_shared<RunLock>(folder);
  const auto config = print_settings(run.work.settings);
  write_attempt(run, folder, config);
  replace_file(folder.plan_file(), plans::print(run.work.plan));
  replace_file(folder.inputs_file(), print_inputs(run.attempt.inputs));
  keep_index(run.data.rows, folder);
  replace_file(folder.dataflow_file(),
               dataflow_json(run.work.workflow, run.work.plan));
  std::error_code ignored;
  fs::remove(folder.stop_file(), ignored);
  // last: a folder with a config.yaml is a run
  replace_file(folder.config_file(), config);
  return lock;
}

void begin_next_attempt(PreparedRun& run) {
  run.attempt = attempt_after(run.attempt, run.work, run.steps.end);
  run.steps.first = run.attempt.resume.first_step;
  write_attempt(run, RunFolder(run.attempt.folder),
                print_settings(run.work.settings));
}

} // namespace troupe::runtime
