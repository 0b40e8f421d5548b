// Resolves `run.resume`, as a pure function of the contents of the run folder:
// start anew, continue at a checkpoint, rename the old folder, or refuse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {
struct Settings;
}

namespace troupe::runtime {

/// A setting whose value differs between the run folder and the command.
struct SettingChange {
  std::string key;    ///< dotted path
  std::string before; ///< "" if absent
  std::string now;    ///< "" if absent
};

struct ResumeInput {
  std::string mode;           ///< auto, force, fresh, never
  std::string folder;         ///< for messages
  bool folder_exists = false; ///< a run exists there (config.yaml)
  std::optional<std::uint32_t> newest_checkpoint; ///< committed steps
  std::optional<std::uint32_t> newer_snapshot;    ///< likewise, in memory
  std::uint32_t num_steps = 0;                    ///< total steps of the run as
                                                  ///< requested
  std::vector<SettingChange> changes;             ///< those that affect the
                                                  ///< result
};

enum class ResumeAction : std::uint8_t {
  start,        ///< no run there yet
  restart,      ///< a run without a checkpoint: again from step 0
  continue_run, ///< at `first_step`
  rename_old,   ///< move the old folder away, then start
  already_done, ///< nothing left to do
};

struct ResumeDecision {
  ResumeAction action = ResumeAction::start;
  std::uint32_t first_step = 0; ///< committed steps to resume from
  std::string sentence;         ///< for the user; may be empty
};

/// Throws ConfigError if the run must not continue (never; auto with changes).
ResumeDecision decide_resume(const ResumeInput& input);

/// Returns the settings of the run folder and of the command that differ and
/// affect the result (docs/interface.md: not cluster, plan, metrics, ...).
std::vector<SettingChange> changes_that_matter(const Settings& before,
                                               const Settings& now);

} // namespace troupe::runtime
