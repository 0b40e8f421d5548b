#include "models/servers/sglang_start.hpp"

namespace troupe::models {

ServerProgram sglang_program(const ServerStart& start) {
  ServerProgram program{.name = start.name,
                        .argv = command_argv(start.command),
                        .environment = {},
                        .log = start.log};
  const auto add = [&](std::initializer_list<std::string> words) {
    program.argv.insert(program.argv.end(), words);
  };
  add({"--model-path", start.model.string()});
  add({"--dtype", start.bf16 ? "bfloat16" : "float32"});
  add({"--context-length", std::to_string(start.most_tokens)});
  add({"--host", "127.0.0.1", "--port", start.port});
  if (start.tp > 1)
    add({"--tp-size", std::to_string(start.tp)});
  if (start.on_cpu)
    add({"--device", "cpu"});
  // /health as a sign of life: by default it generates, which a paused server
  // does not
  program.environment = {{"SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION", "false"},
                         {"HF_HUB_OFFLINE", "1"},
                         {"TRANSFORMERS_OFFLINE", "1"}};
  return program;
}

} // namespace troupe::models
