// The folder for what can be made again: measurements of the machine, rows that
// were fetched or converted. Outside of any run, so that runs share it.
#pragma once

#include <filesystem>

namespace troupe {

/// Returns $XDG_CACHE_HOME/troupe, else ~/.cache/troupe; empty without a home.
std::filesystem::path user_cache_folder();

} // namespace troupe
