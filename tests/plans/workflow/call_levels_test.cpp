#include "plans/workflow/call_levels.hpp"

#include "tests/support/plans/support.hpp"
#include <gmock/gmock.h>

using ::testing::ElementsAre;

namespace troupe::plans {
namespace {

TEST(CallLevels, PpoHasThreeLevelsWithBarriers) {
  const auto ppo = make_ppo();
  EXPECT_THAT(
    call_levels(ppo),
    ElementsAre(ElementsAre(0), ElementsAre(1, 2, 3), ElementsAre(4, 5)));
  EXPECT_TRUE(has_barriers(ppo));
}

TEST(CallLevels, ACallThatSkipsALevelBreaksTheBarrier) {
  auto ppo = make_ppo();
  auto& train = ppo.calls.back();
  train.reads = {"sequence_ids"}; // no longer waits for the scores
  EXPECT_FALSE(has_barriers(ppo) && call_levels(ppo).size() == 3);
}

} // namespace
} // namespace troupe::plans
