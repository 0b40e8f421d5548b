// data.train as one file, several files, and a mixture with weights.
#include "config/settings/data_files.hpp"
#include "config/settings/settings.hpp"

#include "tests/config/settings_fixture.hpp"
#include <gmock/gmock.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using DataFiles = support::SettingsFixture;

Settings settings_of(const std::string& train) {
  return load_settings({"ppo.yaml"}, {"data.train=" + train});
}

TEST_F(DataFiles, OneNameAListAndAMixtureAreRead) {
  EXPECT_THAT(train_files(settings_of("a.jsonl").data),
              ElementsAre(DataSource{"a.jsonl", 0}));
  EXPECT_THAT(train_files(settings_of("[a.jsonl, b.jsonl]").data),
              ElementsAre(DataSource{"a.jsonl", 0}, DataSource{"b.jsonl", 0}));
  const auto mixed
    = settings_of("[{path: a.jsonl, weight: 3}, {path: b.jsonl, weight: 0.5}]");
  EXPECT_THAT(train_files(mixed.data), ElementsAre(DataSource{"a.jsonl", 3},
                                                   DataSource{"b.jsonl", 0.5}));
  EXPECT_TRUE(is_mixture(train_files(mixed.data)));
  EXPECT_FALSE(is_mixture(train_files(settings_of("[a, b]").data)));
  EXPECT_EQ(train_text(mixed.data), "a.jsonl, b.jsonl");
  EXPECT_EQ(settings_of("[a.jsonl]").data.train, "a.jsonl")
    << "a list of one is one file";
}

TEST_F(DataFiles, TheyArePrintedAsTheyAreRead) {
  for (const char* train :
       {"a.jsonl", "[a.jsonl, b.jsonl]",
        "[{path: a.jsonl, weight: 0.7}, {path: 'b, c.jsonl', weight: 0.3}]"}) {
    const auto settings = settings_of(train);
    const auto printed = print_settings(settings);
    EXPECT_EQ(parse_settings(printed, "config.yaml"), settings) << printed;
  }
}

TEST_F(DataFiles, AnotherWeightIsAnotherSetting) {
  const auto one = settings_of("[{path: a, weight: 1}, {path: b, weight: 2}]");
  const auto two = settings_of("[{path: a, weight: 1}, {path: b, weight: 3}]");
  EXPECT_THAT(settings_difference(one, two, resumable_changes()),
              ElementsAre("data.train"));
}

TEST_F(DataFiles, MistakesAreNamedWithTheirPlace) {
  EXPECT_EQ(ppo("data:\n  train:\n    - {path: a, weight: 1}\n    - b\n"),
            "x.yaml:4: data.train[1].weight: expected a number > 0, as other "
            "files have one, got nothing; try {path: b, weight: 1}");
  EXPECT_EQ(ppo("data: {train: [{path: a, weight: -1}]}\n"),
            "x.yaml:1: data.train[0].weight: expected a number > 0, got '-1'; "
            "try leaving the file out, or 1");
  EXPECT_THAT(over("data.train=[{path: a, weight: some}]"),
              HasSubstr("data.train[0].weight: expected a number"));
  EXPECT_THAT(over("data.train=[{weight: 1}]"),
              HasSubstr("data.train[0].path: expected the name of a file"));
  EXPECT_THAT(over("data.train=[{path: a, wieght: 1}]"),
              HasSubstr("data.train[0].wieght: expected path or weight"));
  EXPECT_THAT(over("data.train=[a, a]"),
              HasSubstr("data.train[1]: expected another file, got 'a' again"));
  EXPECT_THAT(over("data.train=[]"), HasSubstr("got an empty list"));
  EXPECT_THAT(over("data.train={path: a}"),
              HasSubstr("got a mapping; try [{path: a}]"));
}

std::vector<std::string> names_of(const std::vector<std::string>& paths) {
  std::vector<DataSource> files;
  for (const auto& path : paths)
    files.push_back({path, 0});
  return source_names(files);
}

TEST_F(DataFiles, EachHasAShortNameOfItsOwn) {
  EXPECT_THAT(names_of({"data/math.jsonl.gz", "code v2.jsonl"}),
              ElementsAre("math", "code_v2"));
  EXPECT_THAT(names_of({"gsm8k/train.parquet", "math/train.parquet"}),
              ElementsAre("gsm8k_train", "math_train"));
  EXPECT_THAT(names_of({"a/x/train.jsonl", "b/x/train.jsonl"}),
              ElementsAre("x_train", "x_train_1"));
  EXPECT_THAT(names_of({"https://host/a/rows.jsonl?token=x", "rows.jsonl"}),
              ElementsAre("a_rows", "rows"));
}

} // namespace
} // namespace troupe
