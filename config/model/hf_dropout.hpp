// Dropout in config.json: training here has none, as is usual in RLHF (other
// trainers also disable it). Checkpoints may ask for it, and users who train
// one are notified.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe {

/// Keys of a GPT-2 config.json, each 0.1 if absent.
extern const std::array<const char*, 3> gpt2_dropouts;

/// Returns the first dropout that a config.json asks for, as "KEY: VALUE".
/// Throws ConfigError for one that is not a number.
std::optional<std::string> asked_dropout(const std::string& json,
                                         const std::string& file_name);
/// Returns the same for a folder's config.json.
std::optional<std::string> asked_dropout(const std::filesystem::path& folder);

} // namespace troupe
