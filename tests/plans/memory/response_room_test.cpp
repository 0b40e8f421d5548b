#include "plans/memory/response_room.hpp"
#include "plans/presets/presets.hpp"
#include "plans/search/less_memory.hpp"
#include "plans/search/local_search.hpp"
#include "plans/search/search_space.hpp"
#include "plans/simulate/simulator.hpp"
#include "plans/weights/device_order.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <vector>

namespace troupe::plans {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// PPO of 7B models on a node: 1,024 responses of 1,024 tokens each, whose keys
/// and values take ten times the node's memory.
PlanProblem crowded_responses() {
  auto problem = make_problem(shape_7b(), 1, 8, "h100x8");
  problem.sizes.samples_per_step = 1024;
  problem.sizes.max_sequence_tokens = 1536;
  problem.sizes.max_new_tokens = 1024;
  problem.sizes.micro_batch_tokens = 8192;
  problem.sizes.engine.storage = StorageRule::published;
  problem.sizes.cache_adapts = true;
  problem.lengths = Lengths(512, 1024, 1024);
  return problem;
}

ExecutionPlan preset_of(const PlanProblem& problem, const char* name) {
  return preset(name, problem.workflow, problem.cluster,
                {.shapes = problem.shapes,
                 .device_memory_bytes = problem.device_memory_bytes(),
                 .weight_element_bytes = 2});
}

TEST(ResponseSteps, AreFewAndEndAtOne) {
  EXPECT_THAT(response_steps(96),
              ElementsAre(96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1));
  EXPECT_THAT(response_steps(1), ElementsAre(1));
  EXPECT_THAT(response_steps(2), ElementsAre(2, 1));
}

TEST(ResponseRoom, AutoFillsTheMemoryThatThePlanLeavesFree) {
  auto problem = crowded_responses();
  const auto plan = preset_of(problem, "verl");
  const auto report = check_plan(problem, plan);
  ASSERT_TRUE(report.ok()) << mistake_line(report.errors.front());
  const auto room = report.rooms.at("actor_gen");
  EXPECT_GT(room.responses, 1u);
  EXPECT_LT(room.responses, room.all);
  const auto steps = response_steps(room.all);
  const auto at = std::ranges::find(steps, room.responses);
  ASSERT_NE(at, steps.end());

  problem.sizes.cache_adapts = false;
  problem.sizes.max_sequences = room.responses;
  EXPECT_TRUE(check_plan(problem, plan).ok());
  problem.sizes.max_sequences = *(at - 1);
  EXPECT_FALSE(check_plan(problem, plan).ok()) << "a step more does not fit";
}

TEST(ResponseRoom, OfOurGpusHasFourShortResponsesForEachLongOne) {
  auto problem = crowded_responses();
  const auto room_on = [&](StorageRule storage) {
    problem.sizes.engine.storage = storage;
    return check_plan(problem, fitted_preset("data_parallel", problem))
      .rooms.at("actor_gen");
  };
  const auto whole = room_on(StorageRule::published);
  EXPECT_EQ(whole.sequences, whole.responses);
  problem.lengths = Lengths(512, 100, 1024); // are not what limits
  const auto paged = room_on(StorageRule::gpu);
  EXPECT_LT(paged.responses, paged.all);
  EXPECT_EQ(paged.sequences, std::min(paged.all, 4 * paged.responses));
}

TEST(ResponseRoom, IsTheSameInCheckAndSimulation) {
  auto problem = crowded_responses();
  const auto plan = preset_of(problem, "verl");
  const CostModel costs(problem);
  const auto run = simulate(problem, costs, plan);
  const auto rooms = check_plan(problem, plan).rooms;
  EXPECT_EQ(run.rooms, rooms);
  auto limited = problem;
  limited.sizes.cache_adapts = false;
  limited.sizes.max_sequences = rooms.at("actor_gen").responses;
  const auto seconds = simulate_step_s(limited, CostModel(limited), plan);
  EXPECT_DOUBLE_EQ(run.step_s, seconds);
  EXPECT_DOUBLE_EQ(simulate_step_s(problem, costs, plan), seconds);
  limited.sizes.max_sequences = 1;
  EXPECT_GT(simulate_step_s(limited, CostModel(limited), plan), 2 * seconds);
}

TEST(ResponseRoom, PublishedSystemsFitSinceTheirCachesAreBounded) {
  auto problem = crowded_responses();
  for (const char* name : {"verl", "openrlhf", "deepspeed_chat"}) {
    problem.sizes.cache_adapts = true;
    const auto report = check_plan(problem, fitted_preset(name, problem));
    EXPECT_TRUE(report.ok())
      << name << ": " << mistake_line(report.errors.front());
    problem.sizes.cache_adapts = false;
    EXPECT_FALSE(check_plan(problem, fitted_preset(name, problem)).ok())
      << name << " with all answers at once";
  }
}

TEST(ResponseRoom, AReserveReducesTheCache) {
  auto problem = crowded_responses();
  const auto plan = preset_of(problem, "verl");
  const auto responses
    = [&] { return check_plan(problem, plan).rooms.at("actor_gen").responses; };
  const auto before = responses();
  problem.hardware.reserve_bytes += 0.3 * problem.hardware.mem_bytes;
  EXPECT_LT(responses(), before);
}

TEST(ResponseRoom, WithUnlimitedMemoryAllResponsesFit) {
  auto problem = crowded_responses();
  problem.hardware.mem_bytes = 0;
  const auto room
    = check_plan(problem, preset_of(problem, "verl")).rooms.at("actor_gen");
  EXPECT_EQ(room.responses, room.all);
}

Evaluation evaluation_of_8_rows(const Workflow& workflow) {
  Settings settings;
  settings.workflow = "ppo";
  settings.eval.data = "rows.jsonl";
  settings.eval.max_rows = 8;
  return evaluation_in(workflow, settings, 1024);
}

TEST(ResponseRoom, AnEvaluationHasItsOwnCache) {
  auto problem = crowded_responses();
  problem.evaluation = evaluation_of_8_rows(problem.workflow);
  const auto rooms = check_plan(problem, preset_of(problem, "verl")).rooms;
  EXPECT_EQ(rooms.at("eval_actor_gen").all, 1u) << "8 rows on 8 ranks";
  EXPECT_GT(rooms.at("actor_gen").responses, 1u);
}

TEST(ResponseRoom, OffloadedWeightsComeToAnEvaluationWithTheirMasters) {
  auto problem = crowded_responses();
  problem.hardware.mem_bytes = 0;
  problem.sizes.engine.storage = StorageRule::gpu;
  problem.evaluation = evaluation_of_8_rows(problem.workflow);
  auto plan = preset_of(problem, "megatron");
  plan.roles["actor"].offload_weights = true;
  const auto report = check_plan(problem, plan);
  ASSERT_TRUE(report.ok()) << mistake_line(report.errors.front());
  const auto planes = [&](const char* name) {
    const auto& tasks = report.devices.front().tasks;
    const auto task = std::ranges::find(tasks, name, &TaskMemory::task);
    return task == tasks.end() ? 0 : task->plane_bytes;
  };
  EXPECT_GT(planes("eval_actor_gen"), 0u);
  EXPECT_EQ(planes("eval_actor_gen"), planes("actor_gen"));
}

TEST(ResponseRoom, ACacheErrorNamesTheCacheAndWhatFits) {
  auto problem = crowded_responses();
  problem.sizes.cache_adapts = false;
  problem.sizes.kv_cache_bytes = 70'000'000'000;
  const auto plan = preset_of(problem, "verl");
  const auto refused = check_plan(problem, plan);
  ASSERT_FALSE(refused.ok());
  const auto text = mistake_line(refused.errors.front());
  EXPECT_THAT(text, HasSubstr("calls.actor_gen: expected at most "));
  const std::string words = "; try rollout.kv_cache_gb=auto or ";
  ASSERT_THAT(text, HasSubstr(words));
  const auto gb = std::stod(text.substr(text.find(words) + words.size()));
  const std::string limit = ", or rollout.max_sequences=";
  ASSERT_THAT(text, HasSubstr(limit));
  const auto responses
    = std::stoul(text.substr(text.find(limit) + limit.size()));

  problem.sizes.max_sequences = static_cast<std::uint32_t>(responses);
  EXPECT_TRUE(check_plan(problem, plan).ok());
  problem.sizes.max_sequences = static_cast<std::uint32_t>(responses + 1);
  EXPECT_FALSE(check_plan(problem, plan).ok());
  problem.sizes.max_sequences = 0;
  problem.sizes.kv_cache_bytes = static_cast<std::uint64_t>(gb * 1e9);
  EXPECT_TRUE(check_plan(problem, plan).ok());
}

TEST(ResponseRoom, AResponseTooLongForADeviceIsNamed) {
  auto problem = crowded_responses();
  problem.sizes.max_sequence_tokens = 200'000;
  problem.sizes.max_new_tokens = 199'000;
  const auto report = check_plan(problem, preset_of(problem, "verl"));
  ASSERT_FALSE(report.ok());
  std::string all;
  for (const auto& mistake : report.errors)
    all += mistake_line(mistake) + "\n";
  EXPECT_THAT(all, HasSubstr("the cache of one answer takes 104.8"));
}

TEST(ResponseLimits, FollowTheSettingsAndTheDevices) {
  Settings settings;
  const auto sizes_of = [&](std::uint64_t device_bytes) {
    const auto ppo = make_ppo();
    const ExecutionPlan plan;
    return make_check_context(settings, ppo, plan, device_bytes);
  };
  settings.cluster.device = "cpu";
  EXPECT_EQ(sizes_of(8000).device_memory_bytes, 8000u);
  EXPECT_EQ(sizes_of(8000).sizes.max_sequences, 64u);
  EXPECT_EQ(sizes_of(8000).sizes.kv_cache_bytes, 2000u) << "a quarter";
  EXPECT_TRUE(sizes_of(8000).sizes.cache_adapts);
  settings.cluster.device = "gpu";
  EXPECT_EQ(sizes_of(8000).device_memory_bytes, 7360u) << "8 % in reserve";
  EXPECT_EQ(sizes_of(8000).sizes.max_sequences, 0u);
  EXPECT_EQ(sizes_of(8000).sizes.kv_cache_bytes, 0u);
  EXPECT_EQ(sizes_of(0).device_memory_bytes, std::nullopt);
  settings.cluster.reserves.memory = 0.5;
  EXPECT_EQ(sizes_of(8000).device_memory_bytes, 4000u);
  settings.cluster.reserves.device_memory = 0.25;
  EXPECT_EQ(sizes_of(8000).device_memory_bytes, 6000u) << "that of GPUs";
  settings.cluster.device = "cpu";
  EXPECT_EQ(sizes_of(8000).device_memory_bytes, 4000u);
  settings.cluster.device = "gpu";
  settings.rollout.kv_cache_gb = 2;
  settings.rollout.max_sequences = 5;
  EXPECT_EQ(sizes_of(8000).sizes.kv_cache_bytes, 2'000'000'000u);
  EXPECT_EQ(sizes_of(8000).sizes.max_sequences, 5u);
  EXPECT_FALSE(sizes_of(8000).sizes.cache_adapts);
}

/// Two calls that share a device of little memory with training: the time that
/// the search promises is the simulated time of its plan.
TEST(ResponseRoom, TheSearchFindsPlansThatItsSimulatorConfirms) {
  auto problem = crowded_responses();
  const CostModel costs(problem);
  const auto found = search_plan(problem, costs, {});
  EXPECT_TRUE(found.proved);
  EXPECT_DOUBLE_EQ(found.best.step_s,
                   simulate_step_s(problem, costs, found.best.plan));
  EXPECT_GE(found.best.step_s, found.lower_bound_s * (1 - 1e-9));
  for (const auto& name : preset_names()) {
    const auto plan = fitted_preset(name, problem);
    if (plan.lag.empty() && check_plan(problem, plan).ok()) {
      EXPECT_LE(found.best.step_s,
                simulate_step_s(problem, costs, plan) * (1 + 1e-9))
        << name;
    }
  }

  const auto less = search_less_memory(problem, {}, found.best);
  ASSERT_TRUE(less && less->best);
  EXPECT_GE(less->best->step_s, found.best.step_s * (1 - 1e-9));
  EXPECT_THAT(less_memory_line(*less, found.best.step_s),
              HasSubstr("10 % less memory: "));
  problem.hardware.mem_bytes = 0;
  EXPECT_FALSE(search_less_memory(problem, {}, found.best));
}

/// Checks that `proved` covers all cache sizes that the simulator may choose.
TEST(ResponseRoom, TheSearchTriesEveryStep) {
  auto problem = crowded_responses();
  problem.sizes.max_sequence_tokens = 24;
  problem.sizes.max_new_tokens = 8;
  problem.lengths = Lengths(16, 8, 8); // caches that take little of a device
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {});
  std::set<std::uint32_t> tried;
  for (const auto& call : space.calls())
    if (call.call->kind == CallKind::generate)
      for (const auto& option : call.options)
        tried.insert(option.responses);
  for (const std::uint32_t responses : {2, 4, 8})
    EXPECT_TRUE(tried.contains(responses)) << responses;
}

/// Checks that values stored for one mesh are never used for another.
TEST(SearchSpaceMoves, DoNotDependOnEarlierQueries) {
  auto problem = crowded_responses();
  problem.cluster.nodes = 16;
  const CostModel costs(problem);
  const SearchSpace up(problem, costs, {}), down(problem, costs, {});
  const auto& calls = up.calls();
  const auto gen = static_cast<std::size_t>(
    std::ranges::find_if(
      calls, [](const auto& call) { return call.call->name == "actor_gen"; })
    - calls.begin());
  const auto count = static_cast<std::uint32_t>(calls[gen].options.size());
  EXPECT_GT(count, 4096u);
  std::vector<double> upwards;
  for (std::uint32_t i = 0; i < count; ++i)
    upwards.push_back(up.move_s(gen, i, 0, 0, 0));
  for (auto i = count; i-- > 0;)
    EXPECT_EQ(down.move_s(gen, i, 0, 0, 0), upwards[i]) << i;
}

TEST(SearchSpaceMoves, EqualTheCostModelForAnyMeshes) {
  const auto problem = make_problem(shape_7b(), 4, 8);
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {});
  PointCost cost(space, {});
  Walk walk(space, cost, {}, 3);
  const auto& calls = space.calls();
  int apart = 0, together = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto point = walk.random_point();
    const auto at = [&](std::size_t call) {
      return space.placement(calls[call].options[point.options[call]],
                             point.positions[call]);
    };
    for (std::size_t call = 0; call < calls.size(); ++call) {
      if (!calls[call].reads_home())
        continue;
      const auto home = static_cast<std::size_t>(calls[call].home);
      const auto source = at(home);
      auto target = at(call);
      if (SearchSpace::shares(
            calls[call].options[point.options[call]], point.positions[call],
            calls[home].options[point.options[home]], point.positions[home]))
        continue;
      const auto node
        = [&](Rank rank) { return problem.cluster.node_of(rank); };
      const bool is_apart
        = node(source.devices.back()) < node(target.devices.front())
          || node(target.devices.back()) < node(source.devices.front());
      (is_apart ? apart : together) += 1;
      target.devices = order_devices(source, target, problem.cluster);
      EXPECT_DOUBLE_EQ(space.move_s(call, point.options[call],
                                    point.positions[call], point.options[home],
                                    point.positions[home]),
                       costs.move_s(calls[call].call->role, source, target));
    }
  }
  EXPECT_GT(apart, 500);
  EXPECT_GT(together, 500);
}

TEST(LessMemory, AnInterruptedSearchSuggestsNothing) {
  const auto problem = make_problem(shape_tiny(), 1, 2);
  const std::atomic<bool> stop{true};
  EXPECT_TRUE(search_less_memory(
    problem, {}, FoundPlan{.plan = fitted_preset("data_parallel", problem)}));
  EXPECT_FALSE(search_less_memory(problem, {.stop = &stop}, {}));
}

TEST(LessMemory, SuggestionsNameTheChange) {
  LessMemory less{.best = FoundPlan{.step_s = 11},
                  .more_s = 1,
                  .changes = {"actor_gen: 64 answers at once, not 96"}};
  EXPECT_EQ(less_memory_line(less, 10),
            "10 % less memory: 11 s, 10.0 % more (actor_gen: 64 answers at "
            "once, not 96)");
  less.changes = {"a: x, not y", "b: x, not y", "c: x, not y", "d: x, not y"};
  EXPECT_THAT(less_memory_line(less, 10),
              HasSubstr("(a: x, not y; b: x, not y and 2 more)"));
  less.changes.clear();
  EXPECT_EQ(less_memory_line(less, 10), "10 % less memory: the same plan");
  EXPECT_EQ(less_memory_line({}, 10), "10 % less memory: no plan fits");
}

} // namespace
} // namespace troupe::plans
