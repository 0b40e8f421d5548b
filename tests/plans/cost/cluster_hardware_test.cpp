#include "config/base/error.hpp"
#include "plans/cost/cluster_hardware.hpp"
#include "plans/cost/cost_model.hpp"
#include "plans/presets/presets.hpp"
#include "plans/search/less_memory.hpp"
#include "plans/search/local_search.hpp"
#include "plans/simulate/simulator.hpp"

#include "tests/support/plans/mixed_support.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <iterator>
#include <random>

using ::testing::HasSubstr;

namespace troupe::plans {
namespace {

/// Returns plans of random meshes and strategies, all of whole calls.
std::vector<ExecutionPlan> random_plans(const PlanProblem& problem, int count,
                                        std::uint64_t seed) {
  auto alike = problem;
  alike.hardware = load_hardware("h100x8");
  alike.hardware.mem_bytes = 0;
  const CostModel costs(alike);
  const SearchSpace space(alike, costs, {});
  PointCost cost(space, {});
  Walk walk(space, cost, {}, seed);
  std::vector<ExecutionPlan> plans;
  for (int i = 0; i < count; ++i)
    plans.push_back(plan_at(space, walk.random_point(), {}));
  return plans;
}

Placement on_devices(std::uint32_t first, std::uint32_t last,
                     const Strategy& strategy) {
  return {.devices = ranks(first, last), .strategy = strategy};
}

std::vector<ExecutionPlan> presets_of(const PlanProblem& problem) {
  std::vector<ExecutionPlan> plans;
  for (const auto& name : preset_names())
    try {
      auto plan = fitted_preset(name, problem);
      if (check_plan(problem, plan).ok())
        plans.push_back(std::move(plan));
    } catch (const PlanError&) {
      continue; // it does not fit this cluster
    }
  return plans;
}

TEST(ClusterHardware, EqualKindsTakeTheSecondsOfOneKindToTheLastBit) {
  int compared = 0;
  for (const auto* name : {"h100x8", "h200x8", "a100x8"}) {
    const auto alike = make_problem(shape_7b(), 4, 8, name);
    auto twice = alike;
    twice.hardware = twice_the_same(name, 4);
    ASSERT_TRUE(twice.hardware.is_mixed());
    const CostModel one(alike), two(twice);
    auto plans = presets_of(alike);
    EXPECT_GT(plans.size(), 5u);
    EXPECT_EQ(plans, presets_of(twice));
    std::ranges::move(random_plans(alike, 40, 5), std::back_inserter(plans));
    for (const auto& plan : plans) {
      EXPECT_EQ(check_plan(alike, plan).ok(), check_plan(twice, plan).ok());
      EXPECT_EQ(simulate_step_s(alike, one, plan),
                simulate_step_s(twice, two, plan))
        << print(plan);
      ++compared;
    }
  }
  EXPECT_GE(compared, 3 * 45);
}

TEST(ClusterHardware, AMeshOnOneKindTakesTheSecondsOfThatKind) {
  const auto mixed = make_mixed_problem(shape_7b(), {"h200x8", "h100x8"});
  const CostModel costs(mixed);
  std::uint32_t first = 0;
  for (const auto* name : {"h200x8", "h100x8"}) {
    const auto alone = make_problem(shape_7b(), 1, 8, name);
    for (const auto& call : alone.workflow.calls) {
      if (call.kind == CallKind::function)
        continue;
      EXPECT_EQ(costs.call_s(call, on_devices(first, first + 7, {2, 1, 4})),
                CostModel(alone).call_s(call, on_devices(0, 7, {2, 1, 4})))
        << name << " " << call.name;
    }
    first += 8;
  }
}

TEST(ClusterHardware, AMeshOnSeveralKindsHasTheWorstOfTheirNumbers) {
  const auto h100 = load_hardware("h100x8");
  const auto a100 = load_hardware("a100x8");
  const auto both = slowest_of({{.hardware = h100}, {.hardware = a100}}, 0b11);
  EXPECT_EQ(both.gemm_flops, a100.gemm_flops);
  EXPECT_EQ(both.mem_Bps, a100.mem_Bps);
  EXPECT_EQ(both.inter_Bps, a100.inter_Bps);
  EXPECT_EQ(both.gather_Bps, a100.zero_Bps) << "0 stands for zero_Bps";
  EXPECT_EQ(both.optimizer_Bps, a100.mem_Bps) << "0 stands for mem_Bps";
  EXPECT_EQ(both.inter_lat_s, a100.inter_lat_s);
  EXPECT_EQ(both.call_device_s, h100.call_device_s);
  EXPECT_GE(both.launch_graph_s, a100.launch_layer_s)
    << "a100x8 replays no graphs";
  const auto problem = make_mixed_problem(shape_7b(), {"h100x8", "a100x8"});
  const CostModel costs(problem);
  for (const auto& call : problem.workflow.calls) {
    if (call.kind == CallKind::function)
      continue;
    const auto across_s = costs.call_s(call, on_devices(4, 11, {1, 1, 8}));
    EXPECT_GE(across_s, costs.call_s(call, on_devices(0, 7, {1, 1, 8})));
    EXPECT_GE(across_s, costs.call_s(call, on_devices(8, 15, {1, 1, 8})));
  }
}

TEST(ClusterHardware, AMoveGoesAtThePaceOfItsSlowerEnd) {
  const auto move_s = [](const std::vector<std::string>& nodes) {
    const auto problem = make_mixed_problem(shape_7b(), nodes);
    return CostModel(problem).move_s("actor", on_devices(0, 7, {8, 1, 1}),
                                     on_devices(8, 15, {1, 1, 8}));
  };
  EXPECT_EQ(move_s({"h100x8", "a100x8"}), move_s({"a100x8", "a100x8"}));
  EXPECT_EQ(move_s({"a100x8", "h100x8"}), move_s({"a100x8", "a100x8"}));
  EXPECT_LT(move_s({"h100x8", "h100x8"}), move_s({"a100x8", "h100x8"}));
}

TEST(ClusterHardware, TheBoundOfAMoveHoldsOnTheFasterKind) {
  const auto mixed = make_mixed_problem(shape_7b(), {"h100x8", "a100x8"});
  const auto slow = make_problem(shape_7b(), 2, 8, "a100x8");
  const CostModel costs(mixed), slow_costs(slow);
  const Strategy cut{1, 1, 8}, whole{8, 1, 1};
  const auto move_s
    = costs.move_s("actor", on_devices(0, 7, cut), on_devices(0, 7, whole));
  ASSERT_GT(slow_costs.least_move_s("actor", cut, whole), move_s);
  EXPECT_LE(costs.least_move_s("actor", cut, whole), move_s);
}

/// Returns the cluster with some numbers of one kind made worse.
ClusterHardware with_slower_kind(ClusterHardware hardware, std::size_t kind,
                                 std::mt19937_64& random) {
  auto& slower = hardware.kinds[kind].hardware;
  for (const auto& field : hardware_fields()) {
    const std::string_view unit = field.unit;
    auto& number = slower.*(field.value);
    const auto times = 1 + double(random() % 30) / 10;
    if (random() % 2 == 0 || unit == "bytes" || unit == "share"
        || unit == "version")
      continue;
    if (unit == "bytes/s" || unit == "FLOP/s")
      number /= times;
    else
      number *= times;
  }
  hardware.update();
  return hardware;
}

TEST(ClusterHardware, ASlowerKindMakesNoTaskOfAPlanFaster) {
  std::mt19937_64 random(11);
  int slower = 0;
  const auto before
    = make_mixed_problem(shape_7b(), {"h100x8", "a100x8", "h200x8", "a100x8"});
  const CostModel costs(before);
  for (const auto& plan : random_plans(before, 120, 3)) {
    auto after = before;
    after.hardware = with_slower_kind(before.hardware, random() % 3, random);
    const CostModel slow(after);
    const auto replicas = replicas_of(before.workflow, plan);
    const auto graph = make_step_graph(before.workflow, plan, replicas);
    const auto was = predict_seconds(before, costs, plan, replicas, graph);
    const auto is = predict_seconds(after, slow, plan, replicas, graph);
    for (std::size_t i = 0; i < was.all.size(); ++i) {
      EXPECT_GE(is.all[i], was.all[i]) << graph.tasks[i].name << print(plan);
      slower += is.all[i] > was.all[i];
    }
  }
  EXPECT_GT(slower, 500);
}

TEST(ClusterHardware, EachDeviceIsCheckedAgainstTheMemoryOfItsKind) {
  auto problem = make_mixed_problem(shape_7b(), {"h200x8", "h100x8"});
  ExecutionPlan plan{.cluster = problem.cluster};
  for (const auto& call : problem.workflow.calls)
    plan.calls[call.name] = call.kind == CallKind::function
                              ? Placement{}
                              : on_devices(0, 15, {2, 1, 8});
  const auto peak_bytes = check_plan(problem, plan).devices.front().peak_bytes;
  auto& small = problem.hardware.kinds[1].hardware;
  small.mem_bytes = double(peak_bytes - 1) + small.reserve_bytes;
  problem.hardware.update();
  const auto report = check_plan(problem, plan);
  ASSERT_EQ(report.errors.size(), 1u);
  EXPECT_THAT(report.errors[0].message, HasSubstr("devices 8-15 of h100x8"));
  EXPECT_EQ(problem.device_memory_bytes(), peak_bytes - 1)
    << "presets are sized for the smaller kind";
  EXPECT_EQ(report.devices[0].kind, "h200x8");
  EXPECT_EQ(report.devices[15].kind, "h100x8");
}

TEST(ClusterHardware, ResponsesAreAsManyAsFitTheSmallestDevice) {
  auto problem = make_mixed_problem(shape_7b(), {"h200x8", "h100x8"});
  problem.lengths = Lengths(1024, 7168, 7168);
  problem.sizes.max_sequence_tokens = 8192;
  problem.sizes.cache_adapts = true;
  ExecutionPlan plan{.cluster = problem.cluster};
  const auto responses = [&](std::uint32_t first, std::uint32_t last) {
    for (const auto& call : problem.workflow.calls)
      plan.calls[call.name] = call.kind == CallKind::function
                                ? Placement{}
                                : on_devices(0, 15, {2, 1, 8, Zero::z3});
    const auto count = last - first + 1;
    plan.calls["actor_gen"] = on_devices(first, last, {count / 4, 1, 4});
    return check_plan(problem, plan).rooms.at("actor_gen").responses;
  };
  const auto on_large = responses(0, 7);
  const auto on_small = responses(8, 15);
  EXPECT_GT(on_large, on_small);
  EXPECT_LE(responses(4, 11), on_small);
}

TEST(ClusterHardware, AShareInReserveIsOfEachKindsMemory) {
  auto hardware = mixed_hardware({"h200x8", "h100x8"});
  hardware.reserve_share(less_memory_share);
  const auto near = [](double usable, const Hardware& of) {
    EXPECT_NEAR(usable, double(usable_bytes(of)), 2);
  };
  near(122.9e9, hardware.of_node(0));
  near(68e9, hardware.of_node(1));
  near(68e9, hardware);
}

} // namespace
} // namespace troupe::plans
