// The files of `troupe new workflow`; tests/e2e/install_test.py builds and runs
// them.
#include "config/base/error.hpp"
#include "runtime/commands/workflow_template.hpp"

#include <gmock/gmock.h>

namespace troupe::runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(WorkflowTemplate, HasFourFilesWithTheName) {
  const auto files = workflow_template("short_talk");
  ASSERT_EQ(files.size(), 4U);
  EXPECT_EQ(files[0].name, "short_talk.hpp");
  EXPECT_EQ(files[1].name, "main.cpp");
  EXPECT_EQ(files[2].name, "CMakeLists.txt");
  EXPECT_EQ(files[3].name, "short_talk.yaml");
  for (const auto& file : files) {
    EXPECT_THAT(file.text, HasSubstr("short_talk")) << file.name;
    EXPECT_THAT(file.text, Not(HasSubstr("my_workflow"))) << file.name;
  }
}

TEST(WorkflowTemplate, RefusesInvalidNamesOfCppOrYaml) {
  for (const auto* name : {"", "Short", "short-talk", "2short", "_x", "a b"})
    EXPECT_THROW(workflow_template(name), ConfigError) << name;
}

TEST(WorkflowTemplate, RefusesTakenNames) {
  for (const auto* name : {"int", "std", "all", "reward", "ppo", "rollout"})
    EXPECT_THROW(workflow_template(name), ConfigError) << name;
  EXPECT_EQ(workflow_template("my_reward").size(), 4U);
}

} // namespace
} // namespace troupe::runtime
