// The doctor on hosts that share the run folder, or do not.
#include "runtime/commands/shared_files_check.hpp"

#include <gmock/gmock.h>

namespace troupe::runtime {
namespace {

using ::testing::HasSubstr;
using Reply = SharedFilesReply;

Settings settings_with(const std::string& shared_files) {
  Settings settings;
  settings.cluster.shared_files = shared_files;
  settings.run.dir = "runs";
  return settings;
}

TEST(SharedFilesCheck, NamesTheHostsThatDoNotShare) {
  const auto check = shared_files_check(
    settings_with("auto"),
    {{"a", Reply::shares}, {"b", Reply::does_not}, {"c", Reply::does_not}});
  EXPECT_TRUE(check.ok());
  EXPECT_EQ(check.found, "b, c do not share runs: files go over the network");
}

TEST(SharedFilesCheck, IsAMistakeWhereTheSettingsSayTheyShare) {
  const auto check
    = shared_files_check(settings_with("true"), {{"b", Reply::does_not}});
  EXPECT_EQ(check.fix, "cluster.shared_files=auto");
}

TEST(SharedFilesCheck, IsAMistakeIfAHostDoesNotReply) {
  const auto check = shared_files_check(
    settings_with("auto"), {{"a", Reply::shares}, {"b", Reply::none}});
  EXPECT_FALSE(check.ok());
  EXPECT_THAT(check.found, HasSubstr("no reply over ssh from b"));
}

TEST(SharedFilesCheck, SaysThatAllShare) {
  EXPECT_EQ(
    shared_files_check(settings_with("true"), {{"a", Reply::shares}}).found,
    "all hosts share runs");
  EXPECT_THAT(shared_files_check(settings_with("auto"), {}).found,
              HasSubstr("when they join"));
  EXPECT_THAT(shared_files_check(settings_with("false"), {}).found,
              HasSubstr("over the network"));
}

} // namespace
} // namespace troupe::runtime
