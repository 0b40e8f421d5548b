// "run.resume": the inputs of a run besides its settings are compared, too.
#include "config/base/error.hpp"
#include "runtime/run_folder/run_inputs.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::runtime;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using troupe::test::TempFolder;
using troupe::test::write_text;

struct RunInputsTest : ::testing::Test {
  TempFolder temp;
  Settings settings;
  plans::Workflow workflow{
    .name = "graph.yaml",
    .roles = {{.name = "actor", .trained = true}},
    .calls = {{.name = "train",
               .kind = plans::CallKind::train,
               .role = "actor",
               .reads = {"sequence_ids", "mask"},
               .fn = "sft_loss",
               .renames = {{"mask", "loss_mask"}}},
              {.name = "metrics", .reads = {"mask"}, .fn = "own.metrics"}},
    .carried = {{.name = "level", .initial = 0.5}}};

  RunInputsTest() {
    settings.data.train = (temp.path() / "rows.jsonl").string();
    write_text(settings.data.train, "{\"text\": \"a\"}\n");
  }
  RunInputs now() const {
    return inputs_of(settings, workflow);
  }
};

TEST_F(RunInputsTest, AreEqualWhenReadAgain) {
  const auto read = parse_inputs(print_inputs(now()), "inputs.json");
  EXPECT_THAT(changed_inputs(read, now()), IsEmpty());
}

TEST_F(RunInputsTest, AChangedCallIsShownBeforeAndAfter) {
  const auto before = now();
  workflow.calls[0].fn = "dpo_loss";
  const auto changes = changed_inputs(before, now());
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].key, "calls.train");
  EXPECT_EQ(changes[0].before, "train sft_loss of actor from sequence_ids, "
                               "mask (loss_mask) to nothing");
  EXPECT_EQ(changes[0].now, "train dpo_loss of actor from sequence_ids, "
                            "mask (loss_mask) to nothing");
}

TEST_F(RunInputsTest, CallsRolesAndCarriedValuesMayBeAddedAndRemoved) {
  const auto before = now();
  workflow.roles.push_back({.name = "judge", .scalar_head = true});
  workflow.carried[0].initial = 1;
  workflow.calls[0].name = "learn";
  const auto changes = changed_inputs(before, now());
  ASSERT_THAT(changes, SizeIs(4));
  EXPECT_EQ(changes[0].key, "calls.learn");
  EXPECT_EQ(changes[0].before, "");
  EXPECT_EQ(changes[1].key, "calls.train");
  EXPECT_EQ(changes[1].now, "");
  EXPECT_EQ(changes[2].key, "carried level");
  EXPECT_EQ(changes[3].now, "frozen with a scalar head");
}

TEST_F(RunInputsTest, SettingsThatOnlyShowMetricsMayChange) {
  const auto before = now();
  workflow.calls[1].reads.emplace_back("sequence_ids");
  EXPECT_THAT(changed_inputs(before, now()), IsEmpty());
}

TEST_F(RunInputsTest, OneChangedLetterInTheDataFileIsAChange) {
  const auto before = now();
  write_text(settings.data.train, "{\"text\": \"b\"}\n");
  const auto changes = changed_inputs(before, now());
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].key, "the file of data.train");
  EXPECT_THAT(changes[0].before, ::testing::StartsWith("14 bytes (CRC-32 "));
}

TEST_F(RunInputsTest, DamagedInputsOrThoseOfANewerVersionAreAMistake) {
  EXPECT_THROW(parse_inputs("{\"calls\": 3}", "inputs.json"), ConfigError);
  EXPECT_THROW(parse_inputs("{\"calls", "inputs.json"), ConfigError);
}
