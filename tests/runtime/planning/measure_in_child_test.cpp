#include "config/base/error.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/base/temporary_folder.hpp"
#include "runtime/planning/measure_in_child.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

#include <filesystem>

namespace troupe::runtime {
namespace {

using ::testing::HasSubstr;

std::string script(const std::filesystem::path& folder,
                   const std::string& commands) {
  const auto file = folder / "program";
  replace_file(file, "#!/bin/sh\n" + commands);
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return file.string();
}

TEST(MeasureInChild, ReadsTheHardwareFileThatTheProgramWrites) {
  const auto folder = scratch_folder("troupe-measure-in-child-");
  auto hardware = plans::load_hardware("laptop");
  hardware.name = "elsewhere";
  replace_file(folder.path() / "found.yaml", plans::print(hardware));
  // profile CONFIG --quick --out FILE
  const auto program
    = script(folder.path(),
             "test \"$1 $3 $4\" = \"profile --quick --out\" && test -s \"$2\" "
             "&& cp "
               + (folder.path() / "found.yaml").string() + " \"$5\"\n");
  EXPECT_EQ(measure_in_child(Settings{}, program).hardware.name, "elsewhere");
}

TEST(MeasureInChild, FailsWithWhatTheProgramSaidLast) {
  const auto folder = scratch_folder("troupe-measure-in-child-");
  const auto program
    = script(folder.path(), "echo first; echo no memory left >&2; exit 3\n");
  try {
    measure_in_child(Settings{}, program);
    FAIL() << "a failed measurement has a result";
  } catch (const FailureError& error) {
    EXPECT_THAT(error.what(), HasSubstr("exit code 3: no memory left"));
  }
}

} // namespace
} // namespace troupe::runtime
