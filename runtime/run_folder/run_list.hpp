// Finds runs: the one that an argument of `status`, `stop` and `logs` means,
// and all runs in a folder.
#pragma once

#include "runtime/run_folder/run_status.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::runtime {

/// Reads the status as it is now: a killed master leaves `running` in the file.
RunStatus seen_status(const RunFolder& folder);

/// Returns the run with this folder, or with this name in the default run.dir.
/// Throws ConfigError that names the nearest run.
RunFolder find_run(const std::string& word);

struct ListedRun {
  RunFolder folder;
  RunStatus status;
  double age_s = -1; ///< seconds since the status was written; below 0: unknown
};
/// Returns the runs in `folder`, the newest first; a broken status.json is left
/// out.
std::vector<ListedRun> list_runs(const std::filesystem::path& folder);
/// Returns a line per run: name, state, step, age.
std::string runs_text(const std::vector<ListedRun>& runs);
/// Returns `{runs: [...]}`.
std::string runs_json(const std::vector<ListedRun>& runs);

/// Returns the default of run.dir: "runs".
std::filesystem::path default_runs_folder();

} // namespace troupe::runtime
