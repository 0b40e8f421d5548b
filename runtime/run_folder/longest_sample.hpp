// The response that a step's generation waited for: the longest one of the last
// step in samples.jsonl. A long tail of lengths, not a slow device, is the
// usual reason of idle devices in generation.
#pragma once

#include <filesystem>
#include <string>

namespace troupe::runtime {

/// Returns "step 60 sample 12, 48 tokens" (the first of equals); empty if the
/// run has no samples. Throws ConfigError at a line that is no record of a
/// sample.
std::string longest_sample(const std::filesystem::path& samples_file);

} // namespace troupe::runtime
