// Rows of data.ptx: how they are read and in which order steps train on them.
#include "models/data/ptx_data.hpp"

#include "tests/support/models/dataset_support.hpp"
#include <gmock/gmock.h>

namespace troupe::models {
namespace {

using ::testing::ElementsAre, ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using troupe::testing::DatasetFile;
using troupe::testing::letters;

TEST_F(DatasetFile, TextsBesideATrainingAreAsLongAsAPromptWithItsResponse) {
  Settings settings;
  settings.workflow = "ppo";
  settings.data.ptx = (folder_ / "rows.jsonl").string();
  settings.data.fields = {{"prompt", "question"}}; // of data.train
  settings.data.max_prompt_tokens = 3;
  settings.rollout.max_new_tokens = 2;
  options(DataKind::sft, "{\"text\": \"abc\"}\n{\"text\": \"abcd\"}\n"
                         "{\"prompt\": \"a\", \"completion\": \"b\"}\n");
  const auto data = open_ptx(settings, letters());
  EXPECT_EQ(data.report().overlong_rows, 1U);
  const std::vector<std::uint32_t> both{0, 1};
  const auto rows = data.rows(both, SampleId(0));
  EXPECT_THAT(packed(rows, "sequence_ids"),
              ElementsAre(0, 10, 11, 12, 1, 0, 10, 11, 1));
  EXPECT_THAT(packed<std::uint8_t>(rows, "loss_mask"),
              ElementsAre(0, 1, 1, 1, 1, 0, 0, 1, 1));
}

TEST_F(DatasetFile, TextsOfAStepAreCountedWithoutTheirRows) {
  Settings settings;
  settings.workflow = "ppo";
  settings.data.ptx = (folder_ / "rows.jsonl").string();
  settings.data.ptx_batch_size = 2;
  options(DataKind::sft, "{\"text\": \"abc\"}\n{\"text\": \"a\"}\n"
                         "{\"prompt\": \"a\", \"completion\": \"b\"}\n");
  const auto data = open_ptx(settings, letters());
  const PtxTokens tokens(settings, data);
  auto order = ptx_order(settings, data.size());
  for (const std::uint64_t step : {0, 1, 2, 1}) {
    const auto rows = order.batch(step);
    EXPECT_THAT(
      tokens.of_step(step),
      ElementsAreArray(data.rows(rows, SampleId(0)).at("sequence_ids").lengths))
      << step;
  }
}

TEST(PtxData, AMissingFileIsNamedWithItsSetting) {
  Settings settings;
  settings.data.ptx = "nowhere.jsonl";
  try {
    open_ptx(settings, letters());
    ADD_FAILURE() << "opened";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("data.ptx: expected a file"));
  }
}

TEST(PtxData, RowsOfAStepDependOnSeedAndStepAlone_I8) {
  Settings settings;
  settings.data.ptx = "texts.jsonl";
  settings.data.batch_size = 5;
  settings.run.seed = 3;
  auto walked = ptx_order(settings, 40);
  const auto first = walked.batch(0);
  EXPECT_EQ(first.size(), 5U);
  const auto fourth = walked.batch(3);
  EXPECT_EQ(ptx_order(settings, 40).batch(3), fourth) << "as after a resume";
  EXPECT_NE(data_order(settings, 40).batch(3), fourth) << "an order of its own";
  settings.data.ptx_batch_size = 7;
  EXPECT_EQ(ptx_order(settings, 40).batch(0).size(), 7U);
  settings.run.seed = 4;
  EXPECT_NE(ptx_order(settings, 40).batch(3), fourth);
}

} // namespace
} // namespace troupe::models
