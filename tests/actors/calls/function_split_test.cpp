#include "actors/calls/function_split.hpp"

#include <gmock/gmock.h>

namespace {

using ::testing::ElementsAre;
using troupe::SampleId;
using troupe::WorkerId;
using namespace troupe::actors;
using troupe::plans::Scope;

std::vector<SampleId> ids(std::initializer_list<std::uint32_t> numbers) {
  std::vector<SampleId> list;
  for (const auto number : numbers)
    list.emplace_back(number);
  return list;
}

/// Worker 0 holds samples 0-1, worker 1 holds 2-5; the data set is everywhere.
std::vector<RowSource> sources() {
  return {{0, {"a"}, ids({0, 1}), {}},
          {1, {"a"}, ids({2, 3, 4, 5}), {}},
          {dataset_holder, {"t"}, ids({0, 1, 2, 3, 4, 5}), {0, 0, 1, 1, 2, 2}}};
}

const std::vector<WorkerId> workers = {WorkerId{0}, WorkerId{1}};

TEST(FunctionSplit, SamplesRunWhereTheirRowsAre) {
  const auto shares
    = split_function(Scope::sample, sources(), workers, {SampleId{0}, 6}, 2);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].member, 0u);
  EXPECT_EQ(shares[0].samples, ids({0, 1}));
  EXPECT_EQ(shares[1].samples, ids({2, 3, 4, 5}));
}

TEST(FunctionSplit, GroupsStayWhole) {
  const auto shares
    = split_function(Scope::group, sources(), workers, {SampleId{0}, 6}, 3);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].samples, ids({0, 1, 2}));
  EXPECT_EQ(shares[1].samples, ids({3, 4, 5}));
}

TEST(FunctionSplit, AChunkIsSplitLikeItsPartOfTheBatch) {
  const std::vector<RowSource> of_chunk
    = {{0, {"a"}, ids({1}), {}}, {1, {"a"}, ids({2}), {}}};
  const auto shares
    = split_function(Scope::sample, of_chunk, workers, {SampleId{1}, 2}, 1);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].samples, ids({1}));
  EXPECT_EQ(shares[1].samples, ids({2}));
}

TEST(FunctionSplit, ABatchRunsWhereMostRowsAre) {
  const auto shares
    = split_function(Scope::batch, sources(), workers, {SampleId{0}, 6}, 2);
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(shares[0].member, 1u);
  EXPECT_EQ(shares[0].samples.size(), 6u);
}

TEST(FunctionSplit, TiesGoToTheLowestRankAndEmptyStepsToOneRank) {
  const auto equal
    = split_function(Scope::sample, {}, workers, {SampleId{0}, 2}, 1);
  ASSERT_EQ(equal.size(), 1u);
  EXPECT_EQ(equal[0].member, 0u);
  const auto none
    = split_function(Scope::sample, {}, workers, {SampleId{0}, 0}, 1);
  ASSERT_EQ(none.size(), 1u);
  EXPECT_THAT(none[0].samples, ElementsAre());
}

} // namespace
