// Troupe's plugin for vLLM (models/servers/vllm_plugin), which this program
// contains: servers that it starts find it in a folder of the run.
#pragma once

#include <filesystem>
#include <string_view>

namespace troupe::models {

/// Returns the Python source of the plugin, and of its parts for adapters and
/// for reading weights.
std::string_view vllm_plugin_source();
std::string_view vllm_adapters_source();
std::string_view vllm_transfer_source();
/// Writes the plugin into a new folder for PYTHONPATH, with the metadata by
/// which vLLM finds plugins. Throws FailureError (io) naming the path.
void write_vllm_plugin(const std::filesystem::path& folder);

} // namespace troupe::models
