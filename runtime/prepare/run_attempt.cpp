#include "runtime/prepare/run_attempt.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "config/base/log.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/run_folder/checkpoint_fit.hpp"
#include "runtime/run_folder/run_keeper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <ranges>
#include <utility>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

/// Returns the changes of settings, and of what the run reads beside them;
/// older versions recorded none of the latter.
std::vector<SettingChange> changes_since(const Settings& settings,
                                         const RunInputs& now,
                                         const RunFolder& folder) {
  const auto config = folder.config_file();
  const auto inputs = folder.inputs_file();
  auto changes = changes_that_matter(
    parse_settings(read_file(config), config.string()), settings);
  if (fs::exists(inputs))
    std::ranges::move(
      changed_inputs(parse_inputs(read_file(inputs), inputs.string()), now),
      std::back_inserter(changes));
  return changes;
}

/// Returns the run's snapshot in memory, if it is newer than the checkpoints,
/// of this plan, and not lost with this host; on several, workers find out.
std::optional<actors::SnapshotRecord> usable_snapshot(const PlannedWork& work,
                                                      const RunFolder& folder) {
  auto record = actors::read_snapshot_record(folder.root());
  if (!record || record->plan != plans::print(work.plan)
      || record->state.next_step.value
           <= folder.newest_checkpoint().value_or(0))
    return std::nullopt;
  if (work.plan.cluster.nodes == 1 && !keeper_client(folder.root()).find())
    return std::nullopt;
  return record;
}

std::optional<std::uint32_t>
steps_of(const std::optional<actors::SnapshotRecord>& snapshot) {
  return snapshot ? std::optional(snapshot->state.next_step.value)
                  : std::nullopt;
}

/// Returns the steps of the newest checkpoint that is whole, with a warning for
/// each newer one.
std::optional<std::uint32_t> newest_whole_checkpoint(const RunFolder& folder) {
  std::exception_ptr newest;
  for (const auto step : folder.checkpoints() | std::views::reverse)
    try {
      actors::read_checkpoint(folder.checkpoint(step));
      return step;
    } catch (const std::exception& error) {
      if (!newest)
        newest = std::current_exception();
      log::runtime.warn(
        fmt::format("skips a damaged checkpoint: {}", error.what()));
    }
  if (newest)
    std::rethrow_exception(newest);
  return std::nullopt;
}

ResumeDecision decide(const Settings& settings, const RunInputs& inputs,
                      std::uint32_t num_steps, const RunFolder& folder,
                      std::optional<std::uint32_t> newer_snapshot) {
  ResumeInput input;
  input.mode = settings.run.resume;
  input.folder = folder.root().string();
  input.folder_exists = folder.exists();
  input.num_steps = num_steps;
  input.newest_checkpoint = is_unattended() ? newest_whole_checkpoint(folder)
                                            : folder.newest_checkpoint();
  input.newer_snapshot = newer_snapshot;
  if (input.folder_exists && input.mode == "auto")
    input.changes = changes_since(settings, inputs, folder);
  return decide_resume(input);
}

/// Checks, before anything is renamed, that no run is active in the folder.
void check_idle(const RunFolder& folder) {
  if (folder.exists())
    const RunLock free(folder);
}

} // namespace

RunAttempt plan_attempt(const PlannedWork& work, RunInputs inputs,
                        std::uint32_t num_steps) {
  RunAttempt attempt;
  attempt.folder = run_folder_of(work.settings);
  attempt.inputs = std::move(inputs);
  const RunFolder folder(attempt.folder);
  folder.check_writable();
  check_idle(folder);
  attempt.snapshot = usable_snapshot(work, folder);
  attempt.resume = decide(work.settings, attempt.inputs, num_steps, folder,
                          steps_of(attempt.snapshot));
  if (attempt.continues() && !attempt.snapshot) {
    attempt.checkpoint = folder.checkpoint(attempt.resume.first_step);
    attempt.is_checked = is_unattended();
    check_lags_fit(*attempt.checkpoint, work.workflow, work.plan);
  }
  attempt.number = attempt.resume.action == ResumeAction::rename_old
                     ? 1
                     : folder.next_attempt();
  return attempt;
}

bool is_unattended() {
  return std::getenv("SLURM_JOB_ID") != nullptr
         || std::getenv("KUBERNETES_SERVICE_HOST") != nullptr;
}

void set_aside_damaged(const RunFolder& folder) {
  if (const auto whole = newest_whole_checkpoint(folder))
    folder.set_aside_after(*whole);
}

RunAttempt attempt_after(const RunAttempt& failed, const PlannedWork& work,
                         std::uint32_t num_steps) {
  const RunFolder folder(failed.folder);
  RunAttempt attempt = failed;
  attempt.number = folder.next_attempt();
  attempt.snapshot = usable_snapshot(work, folder);
  attempt.resume
    = decide_resume({.mode = "force", // this process has changed nothing
                     .folder = failed.folder.string(),
                     .folder_exists = true,
                     .newest_checkpoint = folder.newest_checkpoint(),
                     .newer_snapshot = steps_of(attempt.snapshot),
                     .num_steps = num_steps,
                     .changes = {}});
  attempt.checkpoint.reset();
  attempt.is_checked = true;
  if (!attempt.snapshot && folder.newest_checkpoint())
    attempt.checkpoint = folder.checkpoint(attempt.resume.first_step);
  return attempt;
}

} // namespace troupe::runtime
