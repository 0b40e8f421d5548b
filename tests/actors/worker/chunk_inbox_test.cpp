#include "actors/worker/chunk_inbox.hpp"

#include <gmock/gmock.h>

namespace {

using ::testing::ElementsAre;
using namespace troupe;
using namespace troupe::actors;

ChunkRun chunk(std::uint32_t task, std::vector<std::uint32_t> joined) {
  ChunkRun run;
  run.order.task = task;
  run.order.joined = std::move(joined);
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
  EXPECT_THAT(tasks(inbox.put(StepId(0), chunk(3, {3}))), ElementsAre(3));
  EXPECT_THAT(tasks(inbox.put(StepId(1), chunk(3, {3}))), ElementsAre(3));
}

TEST(ChunkInbox, JoinedChunksStartTogetherInOrderHoweverTheyArrive) {
  ChunkInbox inbox;
  const std::vector<std::uint32_t> joined = {4, 5, 6};
  EXPECT_TRUE(inbox.put(StepId(0), chunk(6, joined)).empty());
  EXPECT_TRUE(inbox.put(StepId(0), chunk(4, joined)).empty());
  EXPECT_THAT(tasks(inbox.put(StepId(0), chunk(5, joined))),
              ElementsAre(4, 5, 6));
}

TEST(ChunkInbox, StepsAndBatchesAreKeptApart) {
  ChunkInbox inbox;
  EXPECT_TRUE(inbox.put(StepId(0), chunk(1, {1, 2})).empty());
  EXPECT_TRUE(inbox.put(StepId(1), chunk(1, {1, 2})).empty());
  EXPECT_TRUE(inbox.put(StepId(0), chunk(3, {3, 4})).empty());
  EXPECT_THAT(tasks(inbox.put(StepId(1), chunk(2, {1, 2}))), ElementsAre(1, 2));
  EXPECT_THAT(tasks(inbox.put(StepId(0), chunk(4, {3, 4}))), ElementsAre(3, 4));
  EXPECT_THAT(tasks(inbox.put(StepId(0), chunk(2, {1, 2}))), ElementsAre(1, 2));
}

} // namespace
