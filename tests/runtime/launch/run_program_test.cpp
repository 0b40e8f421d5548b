#include "runtime/base/jsonl_file.hpp"
#include "runtime/base/temporary_folder.hpp"
#include "runtime/launch/run_program.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace troupe::runtime {
namespace {

net::ChildSpec shell(const std::string& script) {
  return {.name = "script", .argv = {"/bin/sh", "-c", script}};
}

TEST(RunProgram, ReportsHowTheProgramEnded) {
  EXPECT_EQ(run_program(shell("exit 3"))->code, 3);
  EXPECT_EQ(run_program(shell("kill -9 $$"))->signal, SIGKILL);
}

TEST(RunProgram, KeepsItsOutputInItsFolder) {
  const auto folder = scratch_folder("troupe-run-program-");
  auto program = shell("pwd; echo wrong >&2");
  program.working_folder = folder.path();
  program.output_file = "log";
  ASSERT_TRUE(run_program(std::move(program)));
  EXPECT_EQ(read_file(folder.path() / "log"),
            folder.path().string() + "\nwrong\n");
}

TEST(RunProgram, DoesNotOutliveTheDeadline) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(
    run_program(shell("sleep 60 & wait"), std::chrono::milliseconds(1)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

} // namespace
} // namespace troupe::runtime
