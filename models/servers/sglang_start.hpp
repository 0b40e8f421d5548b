// The command line and environment of a SGLang server that we start: pure, so
// that what a server is told is tested without one.
#pragma once

#include "models/servers/server_process.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::models {

struct SglangStart {
  std::string name;    ///< of the server, for messages
  std::string command; ///< the user's: `rollout.server_command`
  std::filesystem::path model;
  std::filesystem::path log;
  std::string port;
  std::int64_t most_tokens = 0; ///< of a prompt with its response
  bool bf16 = false;
  bool on_cpu = true;
};

/// Returns how such a server is started. The user's options come first, so
/// ours win where SGLang takes the last.
ServerProgram sglang_program(const SglangStart& start);

} // namespace troupe::models
