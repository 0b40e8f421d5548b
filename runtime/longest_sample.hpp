// The answer for which a step's generation waited: the longest one of the last
// step in samples.jsonl. A long tail of lengths, not a slow device, is the
// usual reason of idle devices in generation.
#pragma once

#include <filesystem>
#include <string>

namespace troupe::runtime {

/// "step 60 sample 12, 48 tokens" (the first of equals); empty where the run
/// has no samples. ConfigError at the line that is no record of a sample.
std::string longest_sample(const std::filesystem::path& samples_file);

} // namespace troupe::runtime
