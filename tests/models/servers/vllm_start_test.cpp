#include "models/servers/vllm_start.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

namespace troupe::models {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

ServerStart tiny_start() {
  return {.name = "server of device 0",
          .command = "python -m vllm --enforce-eager",
          .model = "runs/sft/actor",
          .plugin = "runs/x/servers/0/plugin",
          .log = "server.log",
          .port = "4711",
          .most_tokens = 512};
}

std::string option(const ServerProgram& program, const std::string& name) {
  const auto at = std::ranges::find(program.argv, name);
  return at == program.argv.end() ? "" : *(at + 1);
}

TEST(VllmStart, OurOptionsComeAfterTheUsersCommand) {
  const auto program = vllm_program(tiny_start());
  EXPECT_EQ(program.argv.at(0), "/bin/sh");
  // the shell hands what follows to the command, and is replaced by it
  EXPECT_EQ(program.argv.at(2), "exec python -m vllm --enforce-eager \"$@\"");
  EXPECT_EQ(option(program, "--model"), "runs/sft/actor");
  EXPECT_EQ(option(program, "--port"), "4711");
  EXPECT_EQ(option(program, "--dtype"), "float32");
  EXPECT_EQ(option(program, "--weight-transfer-config"),
            R"({"backend":"troupe_shm"})");
  EXPECT_THAT(program.argv, Contains("--enable-scale-out"));
  EXPECT_THAT(program.environment, Contains(Pair("VLLM_SERVER_DEV_MODE", "1")));
  EXPECT_THAT(program.environment,
              Contains(Pair("PYTHONPATH", StartsWith("runs/x/servers/0"))));
}

TEST(VllmStart, PromptsAreFedWholeOnCpusUnlessTheCommandSaysHow) {
  auto start = tiny_start();
  EXPECT_THAT(vllm_program(start).argv,
              Contains("--no-enable-chunked-prefill"));
  EXPECT_EQ(option(vllm_program(start), "--max-num-batched-tokens"), "4096");
  start.most_tokens = 9000;
  EXPECT_EQ(option(vllm_program(start), "--max-num-batched-tokens"), "9000");
  start.command += " --enable-chunked-prefill";
  EXPECT_THAT(vllm_program(start).argv,
              Not(Contains("--no-enable-chunked-prefill")));
  start = tiny_start();
  start.on_cpu = false;
  EXPECT_THAT(vllm_program(start).argv,
              Not(Contains("--no-enable-chunked-prefill")));
}

TEST(VllmStart, LogprobsAreProcessedOnlyWhereTheRunWantsSampledOnes) {
  auto start = tiny_start();
  EXPECT_EQ(option(vllm_program(start), "--logprobs-mode"), "");
  start.sampled_logprobs = start.bf16 = true;
  EXPECT_EQ(option(vllm_program(start), "--logprobs-mode"),
            "processed_logprobs");
  EXPECT_EQ(option(vllm_program(start), "--dtype"), "bfloat16");
}

TEST(VllmStart, AServerOfSeveralDevicesIsTensorParallel) {
  auto start = tiny_start();
  EXPECT_EQ(option(vllm_program(start), "--tensor-parallel-size"), "");
  start.tp = 4;
  EXPECT_EQ(option(vllm_program(start), "--tensor-parallel-size"), "4");
}

TEST(VllmStart, WeightsByNcclAreTakenByVllmsOwnBackend) {
  auto start = tiny_start();
  start.over_nccl = true;
  EXPECT_EQ(option(vllm_program(start), "--weight-transfer-config"),
            R"({"backend":"nccl"})");
}

TEST(VllmStart, TheUsersSizeOfTheCacheIsKept) {
  const auto has_size = Contains(Pair("VLLM_CPU_KVCACHE_SPACE", "1"));
  EXPECT_THAT(vllm_program(tiny_start()).environment, has_size);
  ::setenv("VLLM_CPU_KVCACHE_SPACE", "7", 1);
  EXPECT_THAT(vllm_program(tiny_start()).environment, Not(has_size));
  ::unsetenv("VLLM_CPU_KVCACHE_SPACE");
}

} // namespace
} // namespace troupe::models
