// A later file or the command line may switch off what an earlier file set up:
// `eval.data=` ends the evaluation although the file says how often to run it.
// Settings that then have no reader are left out instead of refused.
#pragma once

#include "config/settings.hpp"

#include <string>
#include <vector>

namespace troupe {

/// Resets each setting of an earlier layer whose reader a later layer switched
/// off, and forgets that it was set. `files` are the layers before the command
/// line. Returns the dotted keys that were left out.
std::vector<std::string>
leave_out_switched_off(Settings& settings,
                       const std::vector<std::string>& files);

} // namespace troupe
