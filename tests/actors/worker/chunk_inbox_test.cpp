#include "actors/worker/chunk_inbox.hpp"

#include <gmock/gmock.h>

namespace {

using ::testing::ElementsAre;
using namespace troupe;
using namespace troupe::actors;

ChunkRun chunk(StepId step, std::uint32_t task,
               std::vector<std::uint32_t> joined) {
  ChunkRun run;
  run.step = step;
  run.order.task = task;
  run.order.joined = {step, std::move(joined)};
  return run;
}

std::vector<std::uint32_t> tasks(const std::vector<ChunkRun>& runs) {
  std::vector<std::uint32_t> list;
  for (const auto& run : runs)
    list.push_back(run.order.task);
  return list;
}

TEST(ChunkInbox, ACallWithoutJoinedChunksStartsAtOnce) {
  ChunkInbox inbox;
  EXPECT_THAT(tasks(inbox.put(chunk(StepId(0), 3, {3}))), ElementsAre(3));
  EXPECT_THAT(tasks(inbox.put(chunk(StepId(1), 3, {3}))), ElementsAre(3));
}

TEST(ChunkInbox, JoinedChunksStartTogetherInOrderHoweverTheyArrive) {
  ChunkInbox inbox;
  const std::vector<std::uint32_t> joined = {4, 5, 6};
  EXPECT_TRUE(inbox.put(chunk(StepId(0), 6, joined)).empty());
  EXPECT_TRUE(inbox.put(chunk(StepId(0), 4, joined)).empty());
  EXPECT_THAT(tasks(inbox.put(chunk(StepId(0), 5, joined))),
              ElementsAre(4, 5, 6));
}

TEST(ChunkInbox, StepsAndBatchesAreKeptApart) {
  ChunkInbox inbox;
  EXPECT_TRUE(inbox.put(chunk(StepId(0), 1, {1, 2})).empty());
  EXPECT_TRUE(inbox.put(chunk(StepId(1), 1, {1, 2})).empty());
  EXPECT_TRUE(inbox.put(chunk(StepId(0), 3, {3, 4})).empty());
  EXPECT_THAT(tasks(inbox.put(chunk(StepId(1), 2, {1, 2}))), ElementsAre(1, 2));
  EXPECT_THAT(tasks(inbox.put(chunk(StepId(0), 4, {3, 4}))), ElementsAre(3, 4));
  EXPECT_THAT(tasks(inbox.put(chunk(StepId(0), 2, {1, 2}))), ElementsAre(1, 2));
}

TEST(ChunkInbox, SlicesOfSeveralStepsStartTogetherTheOldestStepFirst) {
  ChunkInbox inbox;
  const auto slice = [](std::uint32_t step, std::uint32_t index) {
    auto run = chunk(StepId(step), 4 + index, {});
    run.order.slice = {index, 3};
    run.order.joined = {StepId(7), {4, 5, 6}};
    return run;
  };
  EXPECT_TRUE(inbox.put(slice(6, 1)).empty());
  EXPECT_TRUE(inbox.put(slice(5, 2)).empty());
  const auto all = inbox.put(slice(7, 0));
  EXPECT_THAT(tasks(all), ElementsAre(6, 5, 4));
  EXPECT_EQ(all.front().step, StepId(5));
}

} // namespace
