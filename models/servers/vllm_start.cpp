#include "models/servers/vllm_start.hpp"

#include "models/servers/vllm_json.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace troupe::models {

namespace {

/// Prompts that are fed at once, in tokens: several of most runs.
constexpr std::int64_t least_batched_tokens = 4096;

std::string before_in_path(const std::filesystem::path& folder) {
  const char* path = std::getenv("PYTHONPATH");
  return folder.string()
         + (path == nullptr || *path == '\0' ? "" : ":" + std::string(path));
}

} // namespace

ServerProgram vllm_program(const ServerStart& start) {
  ServerProgram program{.name = start.name,
                        .argv = command_argv(start.command),
                        .environment = {},
                        .log = start.log};
  const auto add = [&](std::initializer_list<std::string> words) {
    program.argv.insert(program.argv.end(), words);
  };
  add({"--model", start.model.string()});
  add({"--served-model-name", vllm::model_name});
  add({"--dtype", start.bf16 ? "bfloat16" : "float32"});
  add({"--max-model-len", std::to_string(start.most_tokens)});
  add({"--host", "127.0.0.1", "--port", start.port});
  add({"--weight-transfer-config", start.over_nccl
                                     ? R"({"backend":"nccl"})"
                                     : R"({"backend":"troupe_shm"})"});
  if (start.tp > 1)
    add({"--tensor-parallel-size", std::to_string(start.tp)});
  if (start.sampled_logprobs)
    add({"--logprobs-mode", "processed_logprobs"});
  // a seeded request whose prompt is fed in parts kills vLLM 0.32 on CPUs
  if (start.on_cpu
      && start.command.find("chunked-prefill") == std::string::npos)
    add({"--no-enable-chunked-prefill", "--max-num-batched-tokens",
         std::to_string(std::max(start.most_tokens, least_batched_tokens))});
  add({"--enable-scale-out"}); // for /inference/v1/generate
  program.environment = {{"PYTHONPATH", before_in_path(start.plugin)},
                         {"VLLM_SERVER_DEV_MODE", "1"}, // for /pause
                         {"VLLM_NO_USAGE_STATS", "1"},
                         {"DO_NOT_TRACK", "1"},
                         {"HF_HUB_OFFLINE", "1"},
                         {"TRANSFORMERS_OFFLINE", "1"}};
  // vLLM's own default is 4 GiB, more than a tiny model's whole run
  if (start.on_cpu && std::getenv("VLLM_CPU_KVCACHE_SPACE") == nullptr)
    program.environment.emplace_back("VLLM_CPU_KVCACHE_SPACE", "1");
  return program;
}

} // namespace troupe::models
