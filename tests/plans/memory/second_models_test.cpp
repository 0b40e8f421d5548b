// The memory of second models in conversations: their weights are always there,
// their caches while the call runs.
#include "plans/check/plan_check.hpp"
#include "plans/memory/memory_model.hpp"
#include "plans/memory/response_room.hpp"
#include "plans/memory/second_models.hpp"
#include "plans/search/search_space.hpp"

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

#include <algorithm>

namespace troupe::plans {
namespace {

PlanProblem problem_with(const ModelShape& opponent) {
  auto problem = make_problem(shape_tiny(), 1, 4);
  problem.workflow = make_ppo_with_opponent();
  problem.shapes["opponent"] = opponent;
  problem.dtypes["opponent"] = DType::bf16;
  return problem;
}

const TaskMemory& task_of(const DeviceMemory& device, const std::string& name) {
  return *std::ranges::find(device.tasks, name, &TaskMemory::task);
}

std::vector<DeviceMemory> memory_of(const PlanProblem& problem) {
  const auto plan = plan_all(problem.workflow, on(0, 3), 4);
  return device_memory(problem.workflow, plan,
                       replicas_of(problem.workflow, plan), problem.shapes,
                       problem.dtypes, problem.sizes);
}

TEST(SecondModels, AreCountedBesideTheCallsOwn) {
  const auto with = problem_with(shape_tiny());
  auto without = with;
  without.workflow.calls.front().by.with.clear();
  const auto more = memory_of(with).front();
  const auto less = memory_of(without).front();
  EXPECT_EQ(more.weight_bytes - less.weight_bytes,
            stage_bytes(shape_tiny(), {.dp = 4}, with.planes("opponent"))
              .front()
              .weights);
  EXPECT_EQ(task_of(more, "actor_gen").bytes,
            2 * task_of(less, "actor_gen").bytes);
  EXPECT_EQ(task_of(more, "actor_train").bytes,
            task_of(less, "actor_train").bytes);
}

TEST(SecondModels, LeaveFewerResponsesAtOnce) {
  auto with = problem_with(shape_tiny());
  with.sizes.cache_adapts = true;
  with.sizes.samples_per_step = 4096;
  auto without = with;
  without.workflow.calls.front().by.with.clear();
  const auto plan = plan_all(with.workflow, on(0, 3), 4);
  const auto placement = plan.calls.at("actor_gen");
  const ResponseCall both{
    .shape = with.shapes.at("actor"),
    .dtype = DType::bf16,
    .placement = placement,
    .sizes = with.sizes,
    .second = {with.workflow.call("actor_gen"), with.shapes, with.dtypes}};
  const ResponseCall one{.shape = with.shapes.at("actor"),
                         .dtype = DType::bf16,
                         .placement = placement,
                         .sizes = with.sizes};
  const std::vector<std::uint64_t> free{one.bytes(one.most(), 0)};
  EXPECT_EQ(response_room(one, free).responses, one.most());
  EXPECT_LE(response_room(both, free).responses, one.most() / 2);
}

TEST(SecondModels, AreInTheOptionsOfSearches) {
  const auto with = problem_with(shape_tiny());
  auto without = with;
  without.workflow.calls.front().by.with.clear();
  const CostModel costs(with);
  const CostModel fewer(without);
  const SearchSpace more(with, costs, {});
  const SearchSpace less(without, fewer, {});
  const auto fastest = [](const SearchSpace& space) {
    return space.calls().front().options.front();
  };
  EXPECT_GT(fastest(more).seconds, fastest(less).seconds);
  EXPECT_GT(more.calls().front().smallest_bytes,
            less.calls().front().smallest_bytes);
}

} // namespace
} // namespace troupe::plans
