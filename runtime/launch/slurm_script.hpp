// A Slurm batch script: one `troupe train` per job, which is signalled to save
// a checkpoint before its time ends, and queued again if it did.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {
struct Settings;
}

namespace troupe::runtime {

/// Returns the script. `program` is what the job runs, `words` CONFIG...
/// [key=value ...] of the command line, whose relative paths begin at `folder`.
std::string slurm_script(const Settings& settings, const std::string& program,
                         const std::vector<std::string>& words,
                         const std::filesystem::path& folder);

/// Returns `text` as one word of a POSIX shell.
std::string shell_quoted(const std::string& text);

} // namespace troupe::runtime
