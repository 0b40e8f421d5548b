// Runs by name: what `status`, `stop` and `logs` mean by a word, and the runs
// that a folder of runs holds.
#pragma once

#include "runtime/run_status.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::runtime {

/// The status as a reader sees it: a killed master leaves `running` behind.
RunStatus seen_status(const RunFolder& folder);

/// The run that `word` means: its folder, or its name in the default run.dir.
/// ConfigError that names the nearest run.
RunFolder find_run(const std::string& word);

struct ListedRun {
  RunFolder folder;
  RunStatus status;
  double age_s = -1; ///< seconds since the status was written; below 0: unknown
};
/// The runs in `folder`, the newest first; a broken status.json is left out.
std::vector<ListedRun> list_runs(const std::filesystem::path& folder);
/// A line a run: name, state, step, age.
std::string runs_text(const std::vector<ListedRun>& runs);
/// `{runs: [..]}`.
std::string runs_json(const std::vector<ListedRun>& runs);

/// The run.dir of runs that say nothing else: "runs".
std::filesystem::path default_runs_folder();

} // namespace troupe::runtime
