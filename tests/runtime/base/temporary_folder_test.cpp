#include "config/base/error.hpp"
#include "runtime/base/temporary_folder.hpp"

#include "tests/support/temp_folder.hpp"
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

namespace troupe::runtime {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class TemporaryFolderTest : public ::testing::Test {
protected:
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(parent_))
      names.push_back(entry.path().filename());
    return names;
  }
  /// Creates a folder whose owner was killed; returns its name.
  std::string leave_one() {
    const pid_t child = fork();
    if (child == 0) {
      const TemporaryFolder folder{parent_, ".work-"};
      std::ofstream{folder.path() / "half"} << "row";
      raise(SIGKILL);
    }
    waitpid(child, nullptr, 0);
    return names().at(0);
  }

  support::TempFolder folder_;
  fs::path parent_ = folder_.path();
};

TEST_F(TemporaryFolderTest, IsRemovedWithItsOwner) {
  {
    const TemporaryFolder folder{parent_, ".work-"};
    EXPECT_TRUE(fs::is_directory(folder.path()));
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(TemporaryFolderTest, WaitsForNobodyWhoHoldsALock) {
  const int parent = open(parent_.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(parent, LOCK_EX), 0); // by a process that is stopped, say
  const pid_t child = fork();
  if (child == 0) {
    alarm(20); // ends a child that waits
    _exit(fs::is_directory(TemporaryFolder(parent_, ".work-").path()) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  close(parent);
}

TEST_F(TemporaryFolderTest, OfAKilledOwnerIsRemovedByTheNextRun) {
  const auto left = leave_one();
  const TemporaryFolder folder{parent_, ".work-"};
  EXPECT_THAT(names(), SizeIs(1));
  EXPECT_NE(names()[0], left);
}

TEST_F(TemporaryFolderTest, OfALivingOwnerStaysAndSoDoFoldersWithSimilarNames) {
  const auto left = leave_one();
  fs::rename(parent_ / left, parent_ / (left + ".mine"));
  fs::create_directory_symlink(parent_, parent_ / ".work-abcdef");
  std::ofstream{parent_ / ".work-ghijkl"} << "a file";
  const TemporaryFolder first{parent_, ".work-"};
  const TemporaryFolder second{parent_, ".work-"};
  EXPECT_THAT(names(), UnorderedElementsAre(
                         left + ".mine", ".work-abcdef", ".work-ghijkl",
                         first.path().filename(), second.path().filename()));
}

TEST_F(TemporaryFolderTest, AnUncreatableFolderNamesTheReason) {
  EXPECT_THROW(TemporaryFolder(parent_ / "absent", ".work-"),
               std::system_error);
}

TEST_F(TemporaryFolderTest, AScratchFolderIsInTmpdir) {
  const auto set_place = [](const fs::path& place) {
    ::setenv("TMPDIR", place.c_str(), /*overwrite=*/1);
  };
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  set_place(parent_);
  {
    const auto folder = scratch_folder("troupe-test-");
    EXPECT_EQ(folder.path().parent_path(), parent_);
  }
  EXPECT_THAT(names(), IsEmpty());
  set_place(parent_ / "absent");
  EXPECT_THROW(scratch_folder("troupe-test-"), FailureError);
  if (before == nullptr)
    ::unsetenv("TMPDIR");
  else
    set_place(kept);
}

} // namespace
} // namespace troupe::runtime
