#include "models/servers/sglang_start.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace troupe::models {
namespace {

using ::testing::Contains;
using ::testing::Pair;

std::string sglang_option(const ServerProgram& program,
                          const std::string& name) {
  const auto at = std::ranges::find(program.argv, name);
  return at == program.argv.end() ? "" : *(at + 1);
}

TEST(SglangStart, OurOptionsComeAfterTheUsersCommand) {
  ServerStart start{.name = "server of device 0",
                    .command = "python -m sglang.launch_server",
                    .model = "runs/sft/actor",
                    .log = "server.log",
                    .port = "4711",
                    .most_tokens = 512};
  const auto program = sglang_program(start);
  EXPECT_EQ(program.argv.at(2), "exec python -m sglang.launch_server \"$@\"");
  EXPECT_EQ(sglang_option(program, "--model-path"), "runs/sft/actor");
  EXPECT_EQ(sglang_option(program, "--port"), "4711");
  EXPECT_EQ(sglang_option(program, "--dtype"), "float32");
  EXPECT_EQ(sglang_option(program, "--context-length"), "512");
  EXPECT_EQ(sglang_option(program, "--device"), "cpu");
  EXPECT_EQ(sglang_option(program, "--tp-size"), "");
  EXPECT_THAT(
    program.environment,
    Contains(Pair("SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION", "false")));
  start.bf16 = true;
  start.on_cpu = false;
  start.tp = 2;
  EXPECT_EQ(sglang_option(sglang_program(start), "--dtype"), "bfloat16");
  EXPECT_EQ(sglang_option(sglang_program(start), "--device"), "");
  EXPECT_EQ(sglang_option(sglang_program(start), "--tp-size"), "2");
}

} // namespace
} // namespace troupe::models
