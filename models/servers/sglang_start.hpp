// The command line and environment of a SGLang server that we start: pure, so
// that what a server is told is tested without one.
#pragma once

#include "models/servers/server_start.hpp"

namespace troupe::models {

/// Returns how such a server is started. The user's options come first, so
/// ours win where SGLang takes the last.
ServerProgram sglang_program(const ServerStart& start);

} // namespace troupe::models
