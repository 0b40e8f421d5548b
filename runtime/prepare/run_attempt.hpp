// One attempt at a run: the folder it writes, what it reads beside its
// settings, and where it resumes from what earlier attempts left there.
#pragma once

#include "actors/checkpoint/snapshot_record.hpp"
#include "runtime/prepare/planned_work.hpp"
#include "runtime/run_folder/resume.hpp"
#include "runtime/run_folder/run_folder.hpp"
#include "runtime/run_folder/run_inputs.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe::runtime {

struct RunAttempt {
  std::filesystem::path folder; ///< the run folder
  std::uint32_t number = 1;
  RunInputs inputs; ///< read beside its settings; empty for commands
  ResumeDecision resume;
  std::optional<std::filesystem::path> checkpoint; ///< to resume from
  /// In the hosts' memory, to resume from instead of a checkpoint.
  std::optional<actors::SnapshotRecord> snapshot;
  bool is_checked = false; ///< whether its checksums were compared already
  std::vector<std::string> lost_hosts; ///< that it does without
  std::uint32_t restarts = 0;          ///< recoveries of this master so far
  std::uint32_t lost_steps = 0; ///< committed steps that they rolled back

  bool continues() const {
    return resume.action == ResumeAction::continue_run;
  }
};

/// Applies `run.resume` to a run of `num_steps` in the folder of the settings.
/// Throws ConfigError if it must not continue, if another process is running
/// it, and if the folder cannot be written. Writes nothing.
RunAttempt plan_attempt(const PlannedWork& work, RunInputs inputs,
                        std::uint32_t num_steps);

/// Returns whether nobody is there who could remove a damaged checkpoint: the
/// command runs in a job of Slurm or a pod of Kubernetes.
bool is_unattended();
/// Renames checkpoints that are damaged and newer than the newest whole one to
/// NAME.damaged, with a warning for each. Throws what is wrong with the newest
/// if none is whole.
void set_aside_damaged(const RunFolder& folder);

/// Returns the attempt that follows a failed one in a folder that this process
/// has claimed, as if the command were given again; its checkpoints were
/// checked by set_aside_damaged.
RunAttempt attempt_after(const RunAttempt& failed, const PlannedWork& work,
                         std::uint32_t num_steps);

} // namespace troupe::runtime
