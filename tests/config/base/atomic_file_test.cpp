#include "config/base/atomic_file.hpp"
#include "config/base/error.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

namespace troupe {
namespace {

using support::read_text;
using support::TempFolder;
using ::testing::HasSubstr;

std::size_t files_in(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator files(folder);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST(AtomicFile, ReplacesTheFileOnlyWhenItIsCommitted) {
  const TempFolder folder;
  const auto path = folder / "rows.txt";
  replace_file(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
    EXPECT_EQ(read_text(path), "old");
    file.commit(Sync::yes);
  }
  EXPECT_EQ(read_text(path), "new");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(AtomicFile, LeavesNothingWithoutACommit) {
  const TempFolder folder;
  {
    AtomicFile file(folder / "rows.txt");
    file.write("half");
  }
  EXPECT_EQ(files_in(folder.path()), 0U);
}

TEST(AtomicFile, WritesToNoFileThatSomebodyElseHasPutThere) {
  const TempFolder folder;
  const auto path = folder / "token";
  const auto temporary = path.string() + ".tmp" + std::to_string(::getpid());
  replace_file(folder / "theirs", "");
  for (const bool link : {true, false}) { // a link to it, and its other name
    if (link)
      std::filesystem::create_symlink(folder / "theirs", temporary);
    else
      std::filesystem::create_hard_link(folder / "theirs", temporary);
    replace_private_file(path, "secret");
    EXPECT_EQ(read_text(folder / "theirs"), "");
    EXPECT_EQ(read_text(path), "secret");
  }
}

TEST(AtomicFile, ASecretIsForItsOwnerWhateverTheUmask) {
  const TempFolder folder;
  const auto path = folder / "token";
  replace_file(path, "for all");
  const auto old = ::umask(0);
  {
    AtomicFile file(path, "", Readers::owner);
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      if (entry.path() != path) {
        EXPECT_EQ(entry.status().permissions(),
                  std::filesystem::perms::owner_read
                    | std::filesystem::perms::owner_write);
      }
    file.write("secret");
    file.commit();
  }
  ::umask(old);
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read
              | std::filesystem::perms::owner_write);
}

TEST(AtomicFile, AFailureNamesThePathAndWhoWrites) {
  const TempFolder folder;
  try {
    AtomicFile(folder / "none" / "rows.txt", "trace export");
    FAIL() << "was created";
  } catch (const FailureError& error) {
    EXPECT_THAT(error.what(), HasSubstr("trace export"));
    EXPECT_THAT(error.what(), HasSubstr("none/rows.txt: No such file"));
  }
}

} // namespace
} // namespace troupe
