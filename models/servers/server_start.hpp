// The parts of the command line of a server that we start: of vLLM
// (models/servers/vllm_start.hpp) or SGLang (models/servers/sglang_start.hpp).
#pragma once

#include "models/servers/server_process.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::models {

struct ServerStart {
  std::string name;    ///< of the server, for messages
  std::string command; ///< the user's: `rollout.server_command`
  std::filesystem::path model;
  std::filesystem::path plugin; ///< folder that has our plugin; of vLLM
  std::filesystem::path log;
  std::string port;
  std::int64_t most_tokens = 0; ///< of a prompt with its response
  bool bf16 = false;
  bool sampled_logprobs = false; ///< after temperature and filters; of vLLM
  bool on_cpu = true;
  bool over_nccl = false; ///< how vLLM gets weights
  std::uint32_t tp = 1;   ///< its tensor-parallel ranks
};

} // namespace troupe::models
