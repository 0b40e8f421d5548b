// Training here has no dropout, as RLHF is usually run. A GPT-2 checkpoint asks
// for some (0.1 where its config.json says nothing), which would be ignored:
// whoever trains one has to say 0 there. Loading one for anything else is fine.
#pragma once

#include <array>
#include <filesystem>
#include <string>

namespace troupe {

/// Keys of a GPT-2 config.json.
extern const std::array<const char*, 3> gpt2_dropouts;

/// Throws ConfigError naming the first key of a config.json that asks for
/// dropout.
void refuse_dropout(const std::string& json, const std::string& file_name);
/// The same of a folder's config.json.
void refuse_dropout(const std::filesystem::path& folder);

} // namespace troupe
