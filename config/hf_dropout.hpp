// Training here has no dropout, as RLHF is usually run (other trainers turn it
// off likewise). Checkpoints may ask for some: who trains one is told.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe {

/// Keys of a GPT-2 config.json, each 0.1 where it says nothing.
extern const std::array<const char*, 3> gpt2_dropouts;

/// The first dropout that a config.json asks for, as "KEY: VALUE". ConfigError
/// for one that is no number.
std::optional<std::string> asked_dropout(const std::string& json,
                                         const std::string& file_name);
/// The same of a folder's config.json.
std::optional<std::string> asked_dropout(const std::filesystem::path& folder);

} // namespace troupe
