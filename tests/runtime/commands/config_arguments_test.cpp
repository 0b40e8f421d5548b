#include "runtime/commands/command.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::runtime;
using ::testing::ElementsAre;
using troupe::test::TempFolder;
using troupe::test::write_text;

TEST(ConfigArguments, FilesAndOverridesMayBeMixed) {
  const ConfigArguments words{{"a.yaml", "run.steps=5", "b.yaml", "plan=null"}};
  EXPECT_THAT(words.files(), ElementsAre("a.yaml", "b.yaml"));
  EXPECT_THAT(words.overrides(), ElementsAre("run.steps=5", "plan=null"));
}

TEST(ConfigArguments, AFileWithAnEqualSignIsAFile) {
  const TempFolder temp;
  const auto file = (temp.path() / "lr=1.yaml").string();
  write_text(file, "workflow: sft\n");
  EXPECT_THAT(ConfigArguments{{file}}.files(), ElementsAre(file));
}

TEST(ConfigArguments, AMovedRunFolderContinues) {
  const TempFolder temp;
  const auto folder = temp.path() / "moved";
  write_text(folder / "config.yaml", "workflow: sft\n");
  for (const auto& word : {folder.string(), folder.string() + "/"}) {
    const ConfigArguments words{{word}};
    EXPECT_EQ(std::filesystem::path(words.files().at(0)).lexically_normal(),
              folder / "config.yaml");
    EXPECT_THAT(
      words.overrides(),
      ElementsAre("run.name=moved", "run.dir=" + temp.path().string()));
  }
}
