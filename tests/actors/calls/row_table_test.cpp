#include "actors/calls/row_table.hpp"
#include "config/base/error.hpp"

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

RunDone part(std::uint32_t holder, std::vector<std::uint32_t> samples,
             std::vector<std::string> keys) {
  RunDone done;
  done.holder = WorkerId{holder};
  done.keys = std::move(keys);
  for (const auto sample : samples)
    done.samples.emplace_back(sample);
  return done;
}

RowTable table_of_four() {
  RowTable table;
  table.begin(StepId{3}, {.rows = {7, 9}, .tokens = {5, 6}, .epoch = 0}, 2);
  return table;
}

TEST(RowTable, SamplesOfARowShareItsDataSetRow) {
  const auto table = table_of_four();
  const std::string keys[] = {"prompt_ids"};
  const auto sources = table.sources(StepId{3}, keys, {SampleId{0}, 4});
  ASSERT_THAT(sources, SizeIs(1));
  EXPECT_EQ(sources[0].holder, dataset_holder);
  EXPECT_THAT(sources[0].rows, ElementsAre(7, 7, 9, 9));
  EXPECT_THAT(table.tokens(StepId{3}), ElementsAre(5, 5, 6, 6));
}

TEST(RowTable, NamesOneHolderPerSample_I6) {
  auto table = table_of_four();
  table.produced(StepId{3}, part(0, {0, 3}, {"values"}));
  table.produced(StepId{3}, part(1, {1, 2}, {"values"}));
  const std::string keys[] = {"values"};
  const auto sources = table.sources(StepId{3}, keys, {SampleId{0}, 4});
  ASSERT_THAT(sources, SizeIs(2));
  EXPECT_THAT(sources[0].samples, ElementsAre(SampleId{0}, SampleId{3}));
  EXPECT_EQ(sources[1].holder, 1U);
}

TEST(RowTable, RefusesASecondHolder_I6) {
  auto table = table_of_four();
  table.produced(StepId{3}, part(0, {0}, {"values"}));
  EXPECT_THROW(table.produced(StepId{3}, part(1, {0}, {"values"})),
               InvariantError);
}

TEST(RowTable, ReadingBeforeAllRowsAreProducedThrows) {
  auto table = table_of_four();
  table.produced(StepId{3}, part(0, {0, 1}, {"values"}));
  const std::string keys[] = {"values"};
  EXPECT_THROW(table.sources(StepId{3}, keys, {SampleId{0}, 4}),
               InvariantError);
}

TEST(RowTable, AChunkIsReadableBeforeOtherChunksAreProduced) {
  auto table = table_of_four();
  table.produced(StepId{3}, part(1, {2, 3}, {"values"}));
  const std::string keys[] = {"values", "prompt_ids"};
  const auto sources = table.sources(StepId{3}, keys, {SampleId{2}, 2});
  ASSERT_THAT(sources, SizeIs(2));
  EXPECT_EQ(sources[0].holder, 1U);
  EXPECT_THAT(sources[0].samples, ElementsAre(SampleId{2}, SampleId{3}));
  EXPECT_THAT(sources[1].rows, ElementsAre(9, 9));
}

TEST(RowTable, ProducedLengthsReplaceTokenCounts) {
  auto table = table_of_four();
  auto done = part(0, {1, 3}, {"sequence_ids"});
  done.tokens = {20, 30};
  table.produced(StepId{3}, done);
  EXPECT_THAT(table.tokens(StepId{3}), ElementsAre(5, 20, 6, 30));
}

TEST(RowTable, ACommittedStepLeavesNothing) {
  auto table = table_of_four();
  table.commit(StepId{3});
  EXPECT_FALSE(table.known(StepId{3}));
  EXPECT_THROW(table.tokens(StepId{3}), InvariantError);
}

TEST(RowTable, NarrowingKeepsTheEntriesOfTheSamples) {
  const auto table = table_of_four();
  const std::string keys[] = {"prompt_ids"};
  const auto parts = narrow(table.sources(StepId{3}, keys, {SampleId{0}, 4}),
                            {{SampleId{1}, SampleId{2}}, {}, {SampleId{0}}});
  ASSERT_THAT(parts, ElementsAre(SizeIs(1), IsEmpty(), SizeIs(1)));
  EXPECT_THAT(parts[0][0].samples, ElementsAre(SampleId{1}, SampleId{2}));
  EXPECT_THAT(parts[0][0].rows, ElementsAre(7, 9));
  EXPECT_THAT(parts[2][0].samples, ElementsAre(SampleId{0}));
}

// Three rounds of two rows with two samples each.
RowTable table_of_rounds() {
  RowTable table;
  table.begin(
    StepId{3},
    {.rows = {7, 9, 4, 2, 8, 1}, .tokens = {5, 6, 7, 8, 9, 10}, .epoch = 0}, 2,
    3);
  return table;
}

TEST(RowTableRounds, AStepHasTheSamplesOfOneRound) {
  const auto table = table_of_rounds();
  EXPECT_EQ(table.num_samples(StepId{3}), 4U);
  EXPECT_THAT(table.trained_tokens(StepId{3}), ElementsAre(5, 5, 6, 6));
  EXPECT_FALSE(table.is_full(StepId{3}));
}

TEST(RowTableRounds, KeptSamplesAreFoundWhereTheyWereProduced) {
  auto table = table_of_rounds();
  const StepId step{3};
  table.produced(step, part(0, {0, 1, 2, 3}, {"scores"}));
  table.keep(step, std::vector{SampleId{2}, SampleId{3}});
  table.produced(step, part(1, {4, 5, 6, 7}, {"scores"}));
  table.keep(step, std::vector{SampleId{6}, SampleId{7}});
  ASSERT_TRUE(table.is_full(step));
  EXPECT_THAT(table.trained_tokens(step), ElementsAre(6, 6, 8, 8));
  const std::string keys[] = {"scores", "prompt_ids"};
  const auto sources
    = table.sources(step, keys, {SampleId{1}, 3}, /*of_kept=*/true);
  ASSERT_THAT(sources, SizeIs(3));
  EXPECT_THAT(sources[0].samples, ElementsAre(SampleId{3}));
  EXPECT_THAT(sources[1].samples, ElementsAre(SampleId{6}, SampleId{7}));
  EXPECT_THAT(sources[2].rows, ElementsAre(9, 2, 2));
}

TEST(RowTableRounds, TheLastOneFillsUpWithWhatWasLeftOut) {
  auto table = table_of_rounds();
  table.keep(StepId{3}, std::vector{SampleId{8}, SampleId{9}});
  table.fill_up(StepId{3});
  EXPECT_THAT(table.kept(StepId{3}),
              ElementsAre(SampleId{0}, SampleId{1}, SampleId{8}, SampleId{9}));
}

TEST(RowTableRounds, MoreThanARoundIsNeverKept) {
  auto table = table_of_rounds();
  table.keep(StepId{3}, std::vector{SampleId{0}, SampleId{1}, SampleId{2}});
  EXPECT_THROW(table.keep(StepId{3}, std::vector{SampleId{1}}), InvariantError);
  EXPECT_THROW(
    table.keep(StepId{3}, std::vector{SampleId{3}, SampleId{4}, SampleId{5}}),
    InvariantError);
}

} // namespace
} // namespace troupe::actors
