#include "models/servers/vllm_plugin.hpp"

#include "config/base/atomic_file.hpp"
#include "config/base/error.hpp"

#include <system_error>

namespace troupe::models {

namespace {

void write_plugin_file(const std::filesystem::path& path,
                       std::string_view text) {
  AtomicFile file(path, "plugin of vLLM servers");
  file.write(text);
  file.commit();
}

} // namespace

void write_vllm_plugin(const std::filesystem::path& folder) {
  const auto about = folder / "troupe_vllm-1.dist-info";
  std::error_code error;
  std::filesystem::create_directories(about, error);
  if (error)
    throw FailureError({.code = Errc::io,
                        .who = "plugin of vLLM servers",
                        .what = about.string() + ": " + error.message(),
                        .cause = ""});
  write_plugin_file(folder / "troupe_vllm.py", vllm_plugin_source());
  write_plugin_file(folder / "troupe_adapters.py", vllm_adapters_source());
  write_plugin_file(folder / "troupe_transfer.py", vllm_transfer_source());
  write_plugin_file(about / "METADATA",
                    "Metadata-Version: 2.1\nName: troupe-vllm\nVersion: 1\n");
  write_plugin_file(about / "entry_points.txt",
                    "[vllm.general_plugins]\ntroupe = troupe_vllm:register\n");
}

} // namespace troupe::models
