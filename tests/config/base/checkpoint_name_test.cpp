#include "config/base/checkpoint_name.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(CheckpointName, ParsesBackAsItsStepEvenBeyondSixDigits) {
  EXPECT_EQ(checkpoint_name(StepId{20}), "step_000020");
  for (const std::uint32_t step : {0U, 20U, 999'999U, 1'000'000U, ~0U})
    EXPECT_EQ(step_of_checkpoint(checkpoint_name(StepId{step})), StepId{step});
}

TEST(CheckpointName, OtherNamesAreNoCheckpoints) {
  for (const char* name :
       {"", "step_", "step_20", "step_000020_precious", "step_backup",
        "step_0000020", "step_-00020", "step_99999999999", ".tmp-step_000020"})
    EXPECT_EQ(step_of_checkpoint(name), std::nullopt) << name;
}

} // namespace
} // namespace troupe
