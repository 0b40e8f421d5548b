// Checkpoints on disk: a folder is created under a temporary name, its manifest
// with sizes and checksums is written last, and a rename is the commit, so a
// crash or a full disk never leaves half a checkpoint under a valid
// name.
#pragma once

#include "actors/checkpoint/calls_in_flight.hpp"
#include "config/base/checkpoint_name.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// Contents of a checkpoint besides weights and optimizer planes.
struct CheckpointState {
  StepId next_step; ///< the first step not yet done
  std::map<std::string, std::uint32_t> versions; ///< by replica name
  std::map<std::string, double> carried;         ///< values carried from step
                                                 ///< to step
  std::vector<CallInFlight> in_flight;           ///< calls of unfinished steps
  std::string run_id;
};

/// Serializes the state; the inverse throws nlohmann::json::exception if the
/// JSON does not fit.
nlohmann::json json_of(const CheckpointState& state);
CheckpointState checkpoint_state_of(const nlohmann::json& value);

/// Creates an empty checkpoints/.tmp-step_000020.a02 and removes what
/// unfinished ones left. The attempt is in the name, so that a worker of an
/// older attempt, which may still hang in a write on another host, writes into
/// no newer one.
std::filesystem::path begin_checkpoint(const std::filesystem::path& run_folder,
                                       StepId next_step, Incarnation attempt);
/// Writes state and manifest into `temporary`, syncs, renames it into place,
/// points `latest` at it and removes the run's other checkpoints but for the
/// newest `keep` (0: keeps all) and the one that the link `best` points at.
/// Returns the final folder. The checksums of `written` are those of its
/// writers: what others wrote over them shows as damage. Throws FailureError
/// (io) naming the path, also if one of them has another size.
std::filesystem::path
commit_checkpoint(const std::filesystem::path& temporary,
                  const CheckpointState& state, std::uint32_t keep,
                  const std::vector<FileWritten>& written = {});
/// Links from the run folder to a checkpoint.
inline constexpr const char* latest_link = "latest";
inline constexpr const char* best_link = "best";
/// Points such a link at checkpoints/`name`. Throws FailureError (io).
void point_link(const std::filesystem::path& run_folder, const char* link,
                const std::string& name);
/// Returns whether the checkpoint after `next_step` steps exists and is
/// complete.
bool has_checkpoint(const std::filesystem::path& run_folder, StepId next_step);
/// Returns the newest complete checkpoint of a run, if there is one.
std::optional<std::filesystem::path>
latest_checkpoint(const std::filesystem::path& run_folder);
/// Checks the manifest (files, sizes, checksums) and reads the state. Throws
/// ConfigError naming the file that does not fit.
CheckpointState read_checkpoint(const std::filesystem::path& folder);
/// Reads the state alone, without checking the other files.
CheckpointState read_checkpoint_state(const std::filesystem::path& folder);

/// Returns the CRC-32 of a file's bytes. Throws FailureError (io) naming it.
std::uint32_t checksum_of(const std::filesystem::path& path);
/// Returns the folder of a replica's parts inside a checkpoint.
std::filesystem::path weights_folder(const std::filesystem::path& checkpoint,
                                     const std::string& role,
                                     const std::string& replica, bool home);
std::filesystem::path optimizer_file(const std::filesystem::path& checkpoint,
                                     const std::string& role);
/// Returns the file of the rows of calls in flight that `holder` had.
std::filesystem::path rows_file(const std::filesystem::path& checkpoint,
                                WorkerId holder);
/// Returns the row files of `calls`, by the new worker that is to hold them;
/// `file_of` names the file of an old one.
std::vector<LoadRowsOrder>
rows_to_load(const std::function<std::filesystem::path(WorkerId)>& file_of,
             const std::vector<CallInFlight>& calls, std::uint32_t num_workers);

} // namespace troupe::actors
