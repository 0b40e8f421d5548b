// The rule for names: those of runs, folders and hosts become parts of paths,
// job scripts, terminal output and JSON.
#pragma once

#include <string>

namespace troupe {

/// Returns whether `text` is UTF-8 without control characters, in one line.
bool is_plain_text(const std::string& text);

} // namespace troupe
