// Advice about a model folder that does not exist: often its name is that
// of a model on the Hugging Face hub, which has to be downloaded first.
#pragma once

#include <filesystem>
#include <string>

namespace troupe {

/// Returns whether a path reads like a model's name on the Hugging Face hub
/// ("Qwen/Qwen3-0.6B"), and not like one in a folder that exists.
bool is_hub_name(const std::string& path);

/// Returns a hint for a `folder` that does not exist: `hf download ...` if it
/// looks like a model's name on the hub.
std::string missing_folder_hint(const std::filesystem::path& folder);

} // namespace troupe
