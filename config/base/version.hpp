// The version of Troupe as text, in a source of its own: a new commit
// recompiles a single file.
#pragma once

#include <string>

namespace troupe {

/// Returns the text that `troupe --version` prints.
std::string version_text();

} // namespace troupe
