// How an author tests a user-defined workflow: its functions alone, the whole
// step with a fake model, and the loss by its properties.
#include "best_of_n.hpp"
#include <gmock/gmock.h>
#include <troupe/testing.hpp>

namespace {

using testing::ElementsAre;

TEST(BestOfN, KeepsTheFirstBestAndNothingWithoutAPass) {
  EXPECT_THAT(pick_best(std::vector{0.F, 1.F, 1.F}), ElementsAre(0, 1, 0));
  EXPECT_THAT(pick_best(std::vector{0.F, 0.F}), ElementsAre(0, 0));
}

TEST(BestOfN, AStepAsksTheProgramAndKeepsOneOfEachGroup) {
  const auto responses = [](troupe::Sample& sample) {
    sample.set(troupe::keys::response, sample.id() % 3 == 0 ? "0" : "1");
  };
  const auto done
    = troupe::testing::Kit(app(), "best_of_n")
        .settings("best_of_n", Settings{.tool = "cat", .processes = 2})
        .fake("actor_gen", responses)
        .step(troupe::testing::samples(2, 3));
  std::vector<float> kept;
  for (const auto& sample : done)
    kept.push_back(sample[keep]);
  EXPECT_THAT(kept, ElementsAre(0, 1, 0, 0, 1, 0));
}

TEST(BestOfN, AProgramThatEndsIsNamed) {
  const auto response
    = [](troupe::Sample& s) { s.set(troupe::keys::response, "x"); };
  try {
    troupe::testing::Kit(app(), "best_of_n")
      .settings("best_of_n", Settings{.tool = "/bin/false"})
      .fake("actor_gen", response)
      .step(troupe::testing::samples(1, 2));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("/bin/false"));
  }
}

TEST(BestOfN, TheGradientDoesNotDependOnMicroBatches) {
  const auto check
    = troupe::testing::check_loss(kept_nll, reads(keep), mean_over(keep));
  EXPECT_TRUE(check.ok()) << check.gradient_error << " " << check.split_error;
}

TEST(BestOfN, TheProgramTrainsInTwoProcesses) {
  const auto run
    = troupe::testing::run(BEST_OF_N, BEST_OF_N_YAML,
                           {"models.actor.path=model", "run.steps=2",
                            "data.batch_size=4", "best_of_n.tool=sed -u c1"});
  ASSERT_EQ(run.code, 0) << run.errors;
  ASSERT_EQ(run.metrics.size(), 2);
  EXPECT_EQ(run.metrics[1].numbers.at("tool/score"), 1);
  EXPECT_GT(run.metrics[1].numbers.at("actor/grad_norm"), 0);
  ASSERT_EQ(run.samples.size(), 2 * 4 * 4);
  EXPECT_EQ(run.samples[0].numbers.at("tool_score"), 1);
}

TEST(BestOfN, AMissingSettingIsNamed) {
  const auto run
    = troupe::testing::run(BEST_OF_N, BEST_OF_N_YAML,
                           {"models.actor.path=model", "best_of_n.tool=null"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.errors, testing::HasSubstr("best_of_n.tool"));
}

troupe::Loss divides_by_its_own_part(const troupe::TrainBatch& b) {
  return {.loss = -(b.logprobs() * b.mask()).sum() / b.mask().sum()};
}

TEST(BestOfN, TheCheckFindsALossThatDependsOnMicroBatches) {
  const auto check
    = troupe::testing::check_loss(divides_by_its_own_part, troupe::reads());
  EXPECT_LT(check.gradient_error, 1e-6);
  EXPECT_GT(check.split_error, 1e-3);
}

} // namespace
