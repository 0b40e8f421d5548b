// Durations as users write them in settings (`run.max_time`).
#pragma once

#include <optional>
#include <string>

namespace troupe {

/// Returns the seconds of "90", "45s", "90m", "3h30m", "1d" or "HH:MM:SS";
/// nullopt for any other text, an empty one and 0.
std::optional<double> parse_duration_s(const std::string& text);

} // namespace troupe
