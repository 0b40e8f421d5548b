#include "plans/call_layers.hpp"

#include "support.hpp"
#include <gmock/gmock.h>

using ::testing::ElementsAre;

namespace troupe::plans {
namespace {

TEST(CallLayers, PpoHasThreeWithBarriers) {
  const auto ppo = make_ppo();
  EXPECT_THAT(
    call_layers(ppo),
    ElementsAre(ElementsAre(0), ElementsAre(1, 2, 3), ElementsAre(4, 5)));
  EXPECT_TRUE(has_barriers(ppo));
}

TEST(CallLayers, ACallThatSkipsALayersWorkBreaksTheBarrier) {
  auto ppo = make_ppo();
  auto& train = ppo.calls.back();
  train.reads = {"sequence_ids"}; // no longer waits for the scores
  EXPECT_FALSE(has_barriers(ppo) && call_layers(ppo).size() == 3);
}

} // namespace
} // namespace troupe::plans
