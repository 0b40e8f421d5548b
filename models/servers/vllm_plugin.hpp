// Troupe's plugin for vLLM (models/servers/vllm_plugin/troupe_vllm.py), which
// this program contains: servers that it starts find it in a folder of the run.
#pragma once

#include <filesystem>
#include <string_view>

namespace troupe::models {

/// Returns the plugin's Python source.
std::string_view vllm_plugin_source();
/// Writes the plugin into a new folder for PYTHONPATH, with the metadata by
/// which vLLM finds plugins. Throws FailureError (io) naming the path.
void write_vllm_plugin(const std::filesystem::path& folder);

} // namespace troupe::models
