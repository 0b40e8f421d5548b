// Lengths of responses that were measured, for predictions with their whole
// distribution in place of a mean and a maximum.
#pragma once

#include <filesystem>
#include <vector>

namespace troupe::runtime {

/// Reads the lengths of responses, in tokens: those of a run (its folder, or
/// its samples.jsonl), or a file with a number per line. Throws ConfigError
/// naming file and line; for a file without any length too.
std::vector<double> read_response_lengths(const std::filesystem::path& from);

} // namespace troupe::runtime
