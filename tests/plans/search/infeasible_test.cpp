// The report of a search where no plan fits.
#include "config/base/error.hpp"
#include "plans/search/search.hpp"

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

#include <string>

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

namespace troupe::plans {
namespace {

std::string why_nothing_fits(const PlanProblem& problem) {
  const CostModel costs(problem);
  try {
    const auto found = search_plan(problem, costs, {});
    return "found " + found.best.origin;
  } catch (const PlanError& error) {
    return error.what();
  }
}

TEST(Infeasible, OneLineNamesWhatWouldFit) {
  auto problem = make_problem(shape_70b(), 1, 8);
  problem.sizes.engine.storage = StorageRule::host;
  EXPECT_EQ(why_nothing_fits(problem),
            "no plan fits: the smallest peak is 138.7 GB of 76.0 on device 0 "
            "in actor_train; try 32 devices");
  problem.cluster.nodes = 4;
  EXPECT_THAT(why_nothing_fits(problem), HasSubstr("found "))
    << "what the line says fits";
}

/// Half a billion parameters on one device, in sequences whose activations are
/// most of the memory.
PlanProblem long_sequences(bool recompute) {
  auto problem = make_problem(llama_shape(8, 2048, 5504, 16, 16), 1, 1);
  problem.hardware.mem_bytes = 0;
  problem.hardware.reserve_bytes = 0;
  problem.sizes.samples_per_step = 4;
  problem.sizes.max_sequence_tokens = 1 << 16;
  problem.sizes.max_sequences = 1;
  problem.sizes.recompute_activations = recompute;
  problem.lengths = Lengths(1 << 15, 1 << 15, 1 << 15);
  return problem;
}

double peak_on_one_device(const PlanProblem& problem) {
  const auto plan = plan_all(problem.workflow, on(0, 0), 1);
  return double(check_plan(problem, plan).devices.at(0).peak_bytes);
}

TEST(Infeasible, RecomputationIsNamedWhereItIsEnough) {
  const auto kept = peak_on_one_device(long_sequences(false));
  const auto recomputed = peak_on_one_device(long_sequences(true));
  ASSERT_GT(kept, 1.5 * recomputed);
  auto problem = long_sequences(false);
  problem.hardware.mem_bytes = 1.05 * recomputed;
  EXPECT_THAT(why_nothing_fits(problem),
              MatchesRegex("no plan fits: .* in [a-z]+_train; try "
                           "algorithm.recompute=true"));
  problem.sizes.recompute_activations = true;
  EXPECT_THAT(why_nothing_fits(problem), HasSubstr("found "))
    << "what the line says fits";
}

TEST(Infeasible, RecomputationIsNotNamedWhereItIsTooLittle) {
  auto problem = make_problem(shape_70b(), 1, 8);
  problem.sizes.engine.storage = StorageRule::host;
  problem.sizes.recompute_activations = false;
  EXPECT_THAT(why_nothing_fits(problem), HasSubstr("; try 32 devices"));
}

TEST(Infeasible, CallsThatFitOnlyAloneAreNamedTogether) {
  auto problem = make_problem(shape_7b(), 1, 2);
  problem.hardware.mem_bytes = 66e9;
  problem.sizes.engine.storage = StorageRule::host;
  problem.sizes.max_sequences = 64; // else the cache is most of it
  EXPECT_THAT(
    why_nothing_fits(problem),
    MatchesRegex("no plan fits: the smallest peak found is [0-9.]+ GB "
                 "of 62.0 on device [01] in [a-z]+_train; try 4 "
                 "devices"));
}

TEST(Infeasible, ABatchOfFewerSamplesThanMiniBatchesIsNamed) {
  auto problem = make_problem(shape_7b(), 1, 8);
  problem.sizes.samples_per_step = 3;
  EXPECT_EQ(why_nothing_fits(problem),
            "no plan fits: actor_train has fewer samples than devices in every "
            "strategy; try a larger data.batch_size");
}

TEST(Infeasible, AnErrorOfEveryPlanIsReportedLikeTheCheck) {
  auto problem = make_problem(shape_7b(), 1, 8);
  problem.sizes.group_size = problem.sizes.samples_per_step / 2; // two rows
  problem.sizes.mini_batches = 4;
  EXPECT_THAT(why_nothing_fits(problem),
              HasSubstr("algorithm.mini_batches: expected 1 to 2, the rows of "
                        "a step, got 4; try 2"));
}

/// Returns PPO with adapters of four models of 7B, 14 GB each, on one device of
/// which plans may use 36 GB: each call fits alone.
PlanProblem adapters_on_one_device() {
  auto problem = make_problem(shape_7b(), 1, 1, "h100x8");
  problem.hardware.mem_bytes = 40e9;
  problem.sizes.max_sequences = 16;
  for (const auto& role : problem.workflow.roles) {
    auto& shape = problem.shapes.at(role.name);
    if (role.trained)
      shape.lora = {.rank = 16, .alpha = 16, .targets = lora_targets(shape)};
  }
  return problem;
}

// Frozen weights of a replica that several calls share count once.
TEST(Infeasible, TheSmallestPeakIsThatOfAllThatCanLeaveHavingLeft) {
  const auto problem = adapters_on_one_device();
  auto lean = plan_all(problem.workflow, on(0, 0), 1);
  for (const auto& role : problem.workflow.roles)
    lean.roles[role.name]
      = {.offload_weights = true, .offload_optimizer = role.trained};
  for (const auto& call : problem.workflow.calls)
    if (call.kind == CallKind::train || call.kind == CallKind::inference)
      lean.calls[call.name].micro_batches
        = call.kind == CallKind::train ? 128 : 512;
  const auto peak = check_plan(problem, lean).devices.at(0).peak_bytes;
  ASSERT_GT(peak, 36'000'000'000U);
  const auto why = why_nothing_fits(problem);
  const std::string words = "the smallest peak found is ";
  ASSERT_THAT(why, HasSubstr(words));
  const auto printed = std::stod(why.substr(why.find(words) + words.size()));
  // options cut no more micro-batches where a tenth of the memory is enough
  EXPECT_LE(printed, double(peak) / 1e9 + 3.7) << why;
}

// 70 billion parameters in 16 bits with gradients and moments are 1.1 TB;
// frozen ones beside adapters are 17.5 GB per device.
TEST(Infeasible, AdaptersLetEightDevicesTrain70BParameters) {
  auto problem = make_problem(shape_70b(), 1, 8, "h100x8");
  problem.workflow = make_grpo();
  EXPECT_THROW(search_plan(problem, CostModel(problem), {}), PlanError);
  auto& actor = problem.shapes.at("actor");
  actor.lora = {.rank = 16, .alpha = 16, .targets = lora_targets(actor)};
  const auto found = search_plan(problem, CostModel(problem), {});
  EXPECT_TRUE(check_plan(problem, found.best.plan).ok());
}

} // namespace
} // namespace troupe::plans
