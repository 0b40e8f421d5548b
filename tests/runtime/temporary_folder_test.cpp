#include "config/error.hpp"
#include "runtime/temporary_folder.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>
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

class Temporary : public ::testing::Test {
protected:
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(parent_))
      names.push_back(entry.path().filename());
    return names;
  }
  /// Its owner is a process that was killed; returns its name.
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

TEST_F(Temporary, GoesWithItsOwner) {
  {
    const TemporaryFolder folder{parent_, ".work-"};
    EXPECT_TRUE(fs::is_directory(folder.path()));
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(Temporary, OfAKilledOwnerGoesWithTheNext) {
  const auto left = leave_one();
  const TemporaryFolder folder{parent_, ".work-"};
  EXPECT_THAT(names(), SizeIs(1));
  EXPECT_NE(names()[0], left);
}

TEST_F(Temporary, OfALivingOwnerStaysAndSoDoesWhatOnlyLooksAlike) {
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

TEST_F(Temporary, WhereNothingCanBeMadeItSaysWhy) {
  EXPECT_THROW(TemporaryFolder(parent_ / "absent", ".work-"),
               std::system_error);
}

TEST_F(Temporary, AScratchFolderStandsWhereTMPDIRSays) {
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
