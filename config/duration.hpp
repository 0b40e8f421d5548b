// Durations as people write them in settings (`run.max_time`).
#pragma once

#include <optional>
#include <string>

namespace troupe {

/// Seconds of "90", "45s", "90m", "3h30m", "1d" or "HH:MM:SS"; {} otherwise,
/// and for nothing or 0.
std::optional<double> parse_duration_s(const std::string& text);

} // namespace troupe
