// tests/support/vllm_stand_in.py as a server that a test starts.
#pragma once

#include "models/servers/generation_server.hpp"

#include "tests/support/places.hpp"

#include <filesystem>
#include <string>

namespace troupe::testing {

/// Returns the stand-in for the model in `folder`/model, which fails as it is
/// told; its log and the number of its generations are in `folder`.
inline models::ServerSpec vllm_stand_in(const std::filesystem::path& folder,
                                        const std::string& fault = "") {
  const auto port = net::free_local_port();
  const auto program
    = support::source_folder() / "tests/support/vllm_stand_in.py";
  return {.program = {.name = "stand-in",
                      .argv = {"python3", "-B", program.string(), "--model",
                               (folder / "model").string(), "--port", port},
                      .environment
                      = {{"VLLM_STAND_IN", fault},
                         {"VLLM_STAND_IN_COUNT", (folder / "count").string()}},
                      .log = folder / "log"},
          .url = {"127.0.0.1", port, "/"}};
}

} // namespace troupe::testing
