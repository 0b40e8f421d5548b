// tests/support/vllm_stand_in.py and sglang_stand_in.py as servers that a test
// starts.
#pragma once

#include "models/servers/generation_server.hpp"

#include "tests/support/nccl/fake_nccl.hpp"
#include "tests/support/places.hpp"

#include <filesystem>
#include <string>

namespace troupe::testing {

/// Returns a stand-in for the model in `folder`/model, which fails as it is
/// told; its log and the number of its generations are in `folder`.
inline models::ServerSpec stand_in(const std::filesystem::path& folder,
                                   const std::string& program,
                                   const std::string& model_option,
                                   const std::string& fault) {
  const auto port = net::free_local_port();
  const auto file = support::source_folder() / "tests/support" / program;
  return {.program = {.name = "stand-in",
                      .argv = {"python3", "-B", file.string(), model_option,
                               (folder / "model").string(), "--port", port},
                      .environment
                      = {{"VLLM_STAND_IN", fault},
                         {"VLLM_STAND_IN_COUNT", (folder / "count").string()}},
                      .log = folder / "log"},
          .url = {"127.0.0.1", port, "/"}};
}

inline models::ServerSpec vllm_stand_in(const std::filesystem::path& folder,
                                        const std::string& fault = "") {
  return stand_in(folder, "vllm_stand_in.py", "--model", fault);
}

/// Returns one of backend nccl, of as many tensor-parallel ranks.
inline models::ServerSpec nccl_stand_in(const std::filesystem::path& folder,
                                        const std::string& fault = "",
                                        int num_ranks = 1) {
  auto spec = vllm_stand_in(folder, fault);
  spec.program.argv.insert(spec.program.argv.end(),
                           {"--weight-transfer-config", R"({"backend":"nccl"})",
                            "--tensor-parallel-size",
                            std::to_string(num_ranks)});
  spec.program.environment.emplace_back("VLLM_STAND_IN_NCCL",
                                        TROUPE_FAKE_NCCL_FOR_PYTHON);
  spec.broadcast = {.who = {}, .library = &FakeNccl::library()};
  return spec;
}

inline models::ServerSpec sglang_stand_in(const std::filesystem::path& folder,
                                          const std::string& fault = "") {
  auto spec = stand_in(folder, "sglang_stand_in.py", "--model-path", fault);
  spec.kind = models::ServerKind::sglang;
  spec.weights = folder / "weights";
  return spec;
}

} // namespace troupe::testing
