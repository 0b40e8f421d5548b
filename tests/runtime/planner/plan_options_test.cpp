// The plan commands count what a run's own check counts.
#include "plans/cost/hardware.hpp"
#include "plans/presets/presets.hpp"
#include "plans/search/search.hpp"
#include "plans/simulate/simulator.hpp"
#include "runtime/planner/plan_options.hpp"

#include "tests/support/places.hpp"
#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::runtime;

namespace {

/// Four models of 7B on a node of GPUs, with responses that fill it.
Settings long_responses_on_gpus() {
  const auto file = support::source_folder() / "examples/paper/7b.yaml";
  return load_settings({file.string()},
                       {"cluster.device=gpu", "cluster.devices_per_node=8",
                        "rollout.max_new_tokens=1024", "rollout.n=8",
                        "algorithm.recompute=true"});
}

PlanArguments on_h100s() {
  PlanArguments words;
  words.hardware = "h100x8";
  words.quiet = true;
  return words;
}

/// Checks like runtime/prepare/session_plan for devices like those of the
/// problem.
plans::PlanReport check_of_run(const Settings& settings,
                               const plans::PlanProblem& problem,
                               const plans::ExecutionPlan& plan) {
  auto context = plans::make_check_context(
    settings, problem.workflow, plan,
    static_cast<std::uint64_t>(problem.hardware.mem_bytes));
  context.shapes = problem.shapes;
  return plans::check_plan(context);
}

std::vector<std::uint64_t> peaks_of(const plans::PlanReport& report) {
  std::vector<std::uint64_t> peaks;
  for (const auto& device : report.devices)
    peaks.push_back(device.peak_bytes);
  return peaks;
}

TEST(PlanOptions, CountTheCachesAndPeaksOfARunOnGpus) {
  const auto settings = long_responses_on_gpus();
  for (const char* lengths : {"", "300"}) {
    auto words = on_h100s();
    words.response_tokens = lengths;
    const auto problem = make_problem(settings, words);
    const plans::CostModel costs(problem);
    int fitting = 0;
    for (const char* name : {"verl", "megatron", "deepspeed_chat"}) {
      const auto plan = plans::fitted_preset(name, problem);
      const auto run = check_of_run(settings, problem, plan);
      const auto command = plans::check_plan(problem, plan);
      EXPECT_EQ(command.errors, run.errors) << name;
      EXPECT_EQ(command.rooms, run.rooms) << name;
      EXPECT_EQ(peaks_of(command), peaks_of(run)) << name;
      EXPECT_FALSE(peaks_of(command).empty()) << name;
      if (!run.ok())
        continue;
      ++fitting;
      EXPECT_EQ(plans::simulate(problem, costs, plan).rooms, run.rooms) << name;
      EXPECT_LT(run.rooms.at("actor_gen").responses,
                run.rooms.at("actor_gen").all)
        << name << " has room for all: nothing is compared";
    }
    EXPECT_GT(fitting, 0);
  }
}

TEST(PlanOptions, FindPlansThatARunOnGpusAccepts) {
  const auto settings = long_responses_on_gpus();
  const auto problem = make_problem(settings, on_h100s());
  const auto found = plans::search_plan(problem, plans::CostModel(problem), {});
  const auto run = check_of_run(settings, problem, found.best.plan);
  EXPECT_TRUE(run.ok()) << plans::mistake_line(run.errors.front());
}

TEST(PlanOptions, CountPublishedStorageOnlyOnRequest) {
  const auto settings = long_responses_on_gpus();
  auto words = on_h100s();
  const auto own = make_problem(settings, words);
  EXPECT_EQ(own.stored("actor").weights, DType::f32);
  EXPECT_EQ(own.stored("actor").cache, DType::bf16);
  EXPECT_EQ(own.dtype("actor"), DType::bf16);
  words.storage = Storage::published;
  const auto published = make_problem(settings, words);
  EXPECT_EQ(published.stored("actor").weights, DType::bf16);
  const auto plan = plans::fitted_preset("megatron", own);
  const auto of_run = plans::check_plan(own, plan);
  const auto without_masters = plans::check_plan(published, plan);
  EXPECT_EQ(of_run.rooms.at("actor_gen").responses,
            without_masters.rooms.at("actor_gen").responses);
  EXPECT_GT(peaks_of(of_run).front(), peaks_of(without_masters).front())
    << "of as many responses";
}

} // namespace
