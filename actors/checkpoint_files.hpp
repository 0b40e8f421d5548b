// Checkpoints on disk: a folder is made under a temporary name, its manifest
// with sizes and checksums comes last, and a rename is the commit, so a crash
// or a full disk never leaves half a checkpoint under a good name (DESIGN 9).
#pragma once

#include "actors/early_calls.hpp"
#include "config/checkpoint_name.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// What a checkpoint holds besides weights and optimizer planes.
struct CheckpointState {
  StepId next_step; ///< the first step not yet done
  std::map<std::string, std::uint32_t> versions; ///< by replica name
  std::map<std::string, double> carried;         ///< values from step to step
  std::vector<EarlyCall> early;                  ///< of unfinished steps
  std::string run_id;
};

/// checkpoints/.tmp-step_000020, made anew (leftovers go).
std::filesystem::path begin_checkpoint(const std::filesystem::path& run_folder,
                                       StepId next_step);
/// Writes state and manifest into `temporary`, syncs, renames it into place,
/// points `latest` at it and removes the run's other checkpoints but for the
/// newest `keep` (0: keeps all) and the one that the link `best` points at.
/// Returns the final folder. Throws FailureError (io) naming the path.
std::filesystem::path commit_checkpoint(const std::filesystem::path& temporary,
                                        const CheckpointState& state,
                                        std::uint32_t keep);
/// Links of the run folder to a checkpoint.
inline constexpr const char* latest_link = "latest";
inline constexpr const char* best_link = "best";
/// Points such a link at checkpoints/`name`. Throws FailureError (io).
void point_link(const std::filesystem::path& run_folder, const char* link,
                const std::string& name);
/// Whether the checkpoint after `next_step` steps is there and complete.
bool has_checkpoint(const std::filesystem::path& run_folder, StepId next_step);
/// The newest complete checkpoint of a run; none if there is none.
std::optional<std::filesystem::path>
latest_checkpoint(const std::filesystem::path& run_folder);
/// Checks the manifest (files, sizes, checksums) and reads the state. Throws
/// ConfigError naming the file that does not fit.
CheckpointState read_checkpoint(const std::filesystem::path& folder);
/// The state alone, without a look at the other files.
CheckpointState read_checkpoint_state(const std::filesystem::path& folder);

/// CRC-32 of a file's bytes. Throws FailureError (io) naming it.
std::uint32_t checksum_of(const std::filesystem::path& path);
/// Where a replica's parts lie inside a checkpoint.
std::filesystem::path weights_folder(const std::filesystem::path& checkpoint,
                                     const std::string& role,
                                     const std::string& replica, bool home);
std::filesystem::path optimizer_file(const std::filesystem::path& checkpoint,
                                     const std::string& role);
/// Rows of early calls that `holder` had.
std::filesystem::path rows_file(const std::filesystem::path& checkpoint,
                                WorkerId holder);
/// The files of rows of `calls`, by the new worker that is to hold them.
std::vector<LoadRowsOrder> rows_to_load(const std::filesystem::path& checkpoint,
                                        const std::vector<EarlyCall>& calls,
                                        std::uint32_t num_workers);

} // namespace troupe::actors
