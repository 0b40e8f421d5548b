#include "config/base/error.hpp"
#include "plans/presets/presets.hpp"
#include "plans/search/local_search.hpp"
#include "plans/search/search.hpp"
#include "plans/simulate/published_plans.hpp"
#include "plans/simulate/simulator.hpp"
#include "plans/workflow/call_levels.hpp"

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

#include <atomic>
#include <random>

using ::testing::HasSubstr;

namespace troupe::plans {
namespace {

double best_preset_s(const PlanProblem& problem, const CostModel& costs) {
  double best = 1e300;
  for (const auto& name : preset_names()) {
    try {
      const auto plan
        = preset(name, problem.workflow, problem.cluster,
                 {.shapes = problem.shapes,
                  .device_memory_bytes = problem.device_memory_bytes()});
      if (plan.lag.empty() && check_plan(problem, plan).ok())
        best = std::min(best, simulate_step_s(problem, costs, plan));
    } catch (const PlanError&) {
      continue;
    }
  }
  return best;
}

TEST(Search, BeatsEveryPresetAndPassesTheCheck) {
  const auto problem = make_problem(shape_7b(), 1, 8);
  const CostModel costs(problem);
  const auto found = search_plan(problem, costs, {});
  EXPECT_TRUE(check_plan(problem, found.best.plan).ok());
  EXPECT_LE(found.best.step_s, best_preset_s(problem, costs));
  EXPECT_DOUBLE_EQ(found.best.step_s,
                   simulate_step_s(problem, costs, found.best.plan));
  EXPECT_GT(found.lower_bound_s, 0);
  EXPECT_LE(found.lower_bound_s, found.best.step_s);
  EXPECT_TRUE(found.proved);
  EXPECT_EQ(found.next.size(), 3u);
  EXPECT_THAT(summary(found), HasSubstr("lower bound"));
}

TEST(Search, TheSameSeedGivesTheSamePlan) {
  const auto problem = make_problem(shape_7b(), 2, 8);
  const CostModel costs(problem);
  for (const auto method :
       {SearchMethod::automatic, SearchMethod::mcmc, SearchMethod::descent}) {
    const SearchOptions options{.method = method, .seed = 5, .iterations = 400};
    const auto one = search_plan(problem, costs, options);
    const auto two = search_plan(problem, costs, options);
    EXPECT_EQ(one.best.plan, two.best.plan) << to_string(method);
    EXPECT_EQ(one.evaluations, two.evaluations);
  }
}

TEST(Search, RandomWalksNeverBeatTheProof) {
  const auto problem = make_problem(shape_7b(), 1, 4);
  const CostModel costs(problem);
  SearchOptions options;
  const auto exact = search_plan(problem, costs, options);
  ASSERT_TRUE(exact.proved);
  options.iterations = 3000;
  for (const auto method : {SearchMethod::mcmc, SearchMethod::descent}) {
    options.method = method;
    EXPECT_GE(search_plan(problem, costs, options).best.step_s,
              exact.best.step_s * (1 - 1e-9))
      << to_string(method);
  }
}

TEST(Search, ALagIsUsedOnlyWhereItIsAllowed) {
  const auto problem = make_problem(shape_7b(), 1, 8);
  const CostModel costs(problem);
  EXPECT_TRUE(
    search_plan(problem, costs, {.iterations = 200}).best.plan.lag.empty());
  const auto lagged = search_plan(
    problem, costs, {.iterations = 1500, .lag = {{"actor_gen", 1}}});
  EXPECT_EQ(lagged.method, "descent");
  EXPECT_FALSE(lagged.proved);
  EXPECT_LE(lagged.lower_bound_s, lagged.best.step_s);
}

TEST(Search, OtherWorkflowsAreSearched) {
  for (const auto& workflow : {sft_workflow({}), reward_workflow({})}) {
    auto problem = make_problem(shape_7b(), 1, 8);
    problem.workflow = workflow;
    problem.shapes.clear();
    for (const auto& role : workflow.roles)
      problem.shapes[role.name] = shape_7b();
    const CostModel costs(problem);
    const auto found = search_plan(problem, costs, {});
    EXPECT_TRUE(check_plan(problem, found.best.plan).ok());
    EXPECT_TRUE(found.proved);
  }
}

/// The plan in which every replica that a move fills is kept.
ExecutionPlan kept(const PlanProblem& problem, ExecutionPlan plan) {
  for (const auto& replica : replicas_of(problem.workflow, plan).all)
    if (!replica.home && problem.workflow.role(replica.role).trained)
      plan.replicas[replica.name()] = true;
  return plan;
}

/// Seconds of the fastest of all points, by the simulator, and of what becomes
/// of those that are nearly as fast as `known_s` where replicas are kept. Calls
/// that take longer than the best plan, one after the other, are left out.
class EveryPoint {
public:
  EveryPoint(const SearchSpace& space, const CostModel& costs, double known_s)
    : space_(space),
      costs_(costs),
      cost_(space, {}),
      levels_(call_levels(space.problem().workflow)),
      near_s_(1.1 * known_s) {
    point_.options.assign(space.calls().size(), not_chosen);
    point_.positions.assign(space.calls().size(), 0);
    choose(0);
  }
  double best_s = 1e300;
  int kept_ones = 0;

private:
  void choose(std::size_t call) {
    if (call == space_.calls().size())
      return judge();
    const auto& options = space_.calls()[call].options;
    for (std::uint32_t i = 0; i < options.size(); ++i) {
      const auto count = options[i].num_devices;
      point_.options[call] = i;
      for (auto at = space_.align(0, count);
           at + count <= space_.num_devices() && path_s() < near_s_;
           at = space_.align(at + 1, count)) {
        point_.positions[call] = at;
        choose(call + 1);
      }
    }
    point_.options[call] = not_chosen;
  }

  double path_s() const {
    double sum = 0;
    for (const auto& level : levels_) {
      double longest = 0;
      for (const auto call : level)
        if (point_.options[call] != not_chosen)
          longest = std::max(
            longest,
            space_.calls()[call].options[point_.options[call]].seconds);
      sum += longest;
    }
    return sum;
  }

  void judge() {
    const auto step_s = cost_.step_s(point_);
    best_s = std::min(best_s, step_s);
    if (step_s > near_s_)
      return;
    const auto& problem = space_.problem();
    const auto plan = kept(problem, plan_at(space_, point_, {}));
    if (plan.replicas.empty() || !check_plan(problem, plan).ok())
      return;
    ++kept_ones;
    best_s = std::min(best_s, simulate_step_s(problem, costs_, plan));
  }

  const SearchSpace& space_;
  const CostModel& costs_;
  PointCost cost_;
  std::vector<std::vector<std::uint32_t>> levels_;
  double near_s_;
  SpacePoint point_;
};

bool may_offload_homes(const SearchSpace& space) {
  return std::ranges::any_of(space.calls(), [](const auto& call) {
    return call.trains
           && std::ranges::any_of(call.options, [](const auto& option) {
                return option.offload.offload_weights;
              });
  });
}

/// PPO of two devices whose constants and models are drawn.
PlanProblem drawn_problem(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto problem
    = make_problem(random() % 2 == 0 ? shape_7b() : shape_34b(), 1, 2);
  if (random() % 2 == 0)
    for (const auto* role : {"critic", "reward"})
      problem.shapes[role] = shape_tiny();
  problem.hardware.mem_bytes = random() % 2 == 0 ? 0 : 600e9;
  problem.hardware.intra_Bps = random() % 2 == 0 ? 2e11 : 1e9; // moves hurt
  problem.hardware.launch_layer_s *= double(random() % 4);
  problem.hardware.intra_lat_s *= double(random() % 100);
  problem.sizes.samples_per_step = 16u << random() % 4;
  if (seed % 3 == 0) // as much as calls take
    problem.hardware.call_device_s = 1;
  return problem;
}

TEST(Search, NoPlanOfTheSpaceSimulatesFasterThanAProvedOne) {
  int proved = 0, kept_ones = 0, offloads = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const auto problem = drawn_problem(seed);
    const CostModel costs(problem);
    const auto found = search_plan(problem, costs, {});
    EXPECT_LE(found.lower_bound_s, found.best.step_s * (1 + 1e-9)) << seed;
    if (!found.proved)
      continue;
    ++proved;
    EXPECT_FALSE(found.packed_only);
    const SearchSpace space(problem, costs, {});
    const EveryPoint all(space, costs, found.best.step_s);
    EXPECT_LE(found.best.step_s, all.best_s * (1 + 1e-9)) << seed;
    kept_ones += all.kept_ones;
    offloads += may_offload_homes(space);
  }
  EXPECT_GE(proved, 8) << "a proof is the rule";
  EXPECT_GT(kept_ones, 1000);
  EXPECT_GT(offloads, 1) << "trained weights may leave in some of them";
}

TEST(Search, AProofHoldsWhereDevicesShareCores) {
  int proved = 0, shared = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    auto problem = drawn_problem(seed);
    problem.hardware.devices_per_node = 2;
    const auto free_s
      = search_plan(problem, CostModel(problem), {}).best.step_s;
    problem.hardware.crowded_share = seed % 2 == 0 ? 0.5 : 0.75;
    const CostModel costs(problem);
    const auto found = search_plan(problem, costs, {});
    EXPECT_EQ(found.method, "exact");
    EXPECT_LE(found.lower_bound_s, found.best.step_s * (1 + 1e-9)) << seed;
    proved += found.proved;
    shared += found.best.step_s < free_s * (1 - 1e-9);
    const SearchSpace space(problem, costs, {});
    const EveryPoint all(space, costs, found.best.step_s);
    EXPECT_LE(found.lower_bound_s, all.best_s * (1 + 1e-9)) << seed;
    if (found.proved) {
      EXPECT_LE(found.best.step_s, all.best_s * (1 + 1e-9)) << seed;
    }
  }
  EXPECT_GE(proved, 4) << "a proof is the rule";
  EXPECT_GT(shared, 2) << "profiled seconds are those beside each other";
}

TEST(Search, AKeptReplicaTakesNoLessTimeOrMemory) {
  int moved = 0;
  for (const auto& shape : {shape_7b(), shape_34b()}) {
    auto problem = make_problem(shape, 2, 4);
    problem.hardware.mem_bytes = 0;
    problem.hardware.move_s = 0.5; // as long as calls
    const CostModel costs(problem);
    const SearchSpace space(problem, costs, {});
    PointCost cost(space, {});
    Walk walk(space, cost, {}, 7);
    for (int i = 0; i < 300; ++i) {
      const auto dropped = plan_at(space, walk.random_point(), {});
      auto plan = kept(problem, dropped);
      moved += !plan.replicas.empty();
      EXPECT_DOUBLE_EQ(simulate_step_s(problem, costs, plan),
                       simulate_step_s(problem, costs, dropped))
        << print(plan);
      const auto needs = check_plan(problem, plan).devices;
      const auto needed = check_plan(problem, dropped).devices;
      for (std::size_t k = 0; k < needs.size(); ++k)
        EXPECT_GE(needs[k].peak_bytes, needed[k].peak_bytes);
    }
  }
  EXPECT_GT(moved, 400) << "most points have moves";
}

TEST(Search, TheLowerBoundHoldsForEveryPreset) {
  for (const std::uint32_t nodes : {1u, 2u, 3u})
    for (const auto& shape : {shape_7b(), shape_34b()}) {
      auto problem = make_problem(shape, nodes, 8, "h200x8");
      problem.hardware.mem_bytes *= 2;
      problem.lengths = Lengths(128, 512, 1024);
      problem.sizes.max_sequence_tokens = 1152;
      const CostModel costs(problem);
      const auto found = search_plan(problem, costs, {});
      EXPECT_LE(found.lower_bound_s, found.best.step_s * (1 + 1e-9));
      EXPECT_LE(found.best.step_s, best_preset_s(problem, costs) * (1 + 1e-9));
    }
}

TEST(Search, NothingIsProvedWhereBarriersDoNotHold) {
  auto problem = make_problem(shape_7b(), 1, 4);
  const CostModel costs(problem);
  EXPECT_TRUE(search_plan(problem, costs, {}).proved);
  const auto chunked = search_plan(
    problem, costs, {.iterations = 500, .chunks = ChunkSearch::everywhere});
  EXPECT_FALSE(chunked.proved) << "chunks may beat what was proved";
  EXPECT_LE(chunked.lower_bound_s, chunked.best.step_s * (1 + 1e-9));
  EXPECT_EQ(proof_words(chunked), "");
}

TEST(Search, ChunksAreAddedAfterwardsWhereTheyPayOff) {
  auto problem = make_problem(shape_7b(), 2, 8);
  problem.sizes.engine.storage = StorageRule::host;
  problem.lengths = Lengths(128, 128, 1024); // the longest keeps all waiting
  problem.sizes.max_sequence_tokens = 1152;
  const CostModel costs(problem);
  const auto whole = search_plan(problem, costs, {});
  const auto found
    = search_plan(problem, costs, {.chunks = ChunkSearch::afterwards});
  EXPECT_LT(found.best.step_s, whole.best.step_s);
  EXPECT_TRUE(check_plan(problem, found.best.plan).ok());
  const bool cut = std::ranges::any_of(
    found.best.plan.calls, [](const auto& c) { return c.second.chunks > 1; });
  EXPECT_TRUE(cut);
  EXPECT_FALSE(found.proved) << "a proof is one of whole calls";
  EXPECT_LE(found.lower_bound_s, found.best.step_s * (1 + 1e-9));
}

enum class Counts { as_a_run, as_published };

void expect_ppo_closes(std::uint32_t nodes, const std::string& hardware,
                       Counts counts, std::uint64_t most_nodes) {
  for (const auto& shape : {shape_7b(), shape_34b(), shape_70b()}) {
    auto problem = make_problem(shape, nodes, 8, hardware);
    problem.sizes.engine.storage = StorageRule::host;
    if (counts == Counts::as_published)
      problem.sizes = published_sizes(problem.sizes, Settings{});
    problem.sizes.cache_adapts = true;
    const auto found = search_plan(problem, CostModel(problem), {});
    EXPECT_TRUE(found.proved) << hardware << ", " << shape.num_layers;
    EXPECT_LT(found.nodes, most_nodes) << hardware << ", " << shape.num_layers;
  }
}

/// As users search, and as `--published` does, each in half a second.
TEST(Search, PpoOn128DevicesCloses) {
  for (const auto counts : {Counts::as_a_run, Counts::as_published}) {
    expect_ppo_closes(16, "a100x8", counts, 2'500'000);
    expect_ppo_closes(16, "h100x8", counts, 500'000);
  }
}

/// In about two seconds each.
TEST(Search, PpoOn1024DevicesCloses) {
  expect_ppo_closes(128, "h100x8", Counts::as_published, 400'000);
}

TEST(Search, NoPointIsFasterThanItsLongestPath) {
  const auto problem = make_problem(shape_7b(), 2, 8);
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {});
  PointCost simulates(space, {}), skips(space, {});
  Walk walk(space, simulates, {}, 7);
  int skipped = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto point = walk.random_point();
    const auto step_s = simulates.step_s(point);
    const auto best_s
      = skips.best().empty() ? 1e300 : skips.best().front().step_s;
    const auto below_s = skips.step_s_below(best_s, point);
    EXPECT_TRUE(below_s == step_s || (below_s > 1e300 && step_s >= best_s));
    skipped += below_s != step_s;
  }
  EXPECT_GT(skipped, 500);
  ASSERT_EQ(skips.best().size(), simulates.best().size());
  for (std::size_t i = 0; i < skips.best().size(); ++i)
    EXPECT_EQ(skips.best()[i].point, simulates.best()[i].point);
  EXPECT_EQ(skips.evaluations(), simulates.evaluations());
}

TEST(Search, AnInterruptedSearchHasABestPlanAndABound) {
  const auto problem = make_problem(shape_7b(), 1, 8);
  const CostModel costs(problem);
  const std::atomic<bool> stop = true;
  const auto found = search_plan(problem, costs, {.stop = &stop});
  EXPECT_TRUE(found.end == SearchEnd::interrupted);
  EXPECT_FALSE(found.proved);
  EXPECT_GT(found.lower_bound_s, 0);
  EXPECT_TRUE(check_plan(problem, found.best.plan).ok());
}

} // namespace
} // namespace troupe::plans
