#include "config/model/missing_folder.hpp"

#include <gmock/gmock.h>

using namespace troupe;
using ::testing::HasSubstr;

TEST(MissingFolder, AHubNameIsAnsweredWithHowToDownloadIt) {
  EXPECT_EQ(missing_folder_hint("Qwen/Qwen3-0.6B"),
            "`hf download Qwen/Qwen3-0.6B --local-dir Qwen/Qwen3-0.6B`, then "
            "this again");
  // names of folders here
  for (const char* name : {"nope", "/a/b", "./a/b", "a/b/c", "../x", "a b/c"})
    EXPECT_THAT(missing_folder_hint(name), HasSubstr("a folder that exists"))
      << name;
}
