// SearchSpace: which planes may leave a device between the calls of a role, and
// which devices experts may be dealt to.
#include "plans/search/local_search.hpp"
#include "plans/search/search.hpp"
#include "plans/search/search_space.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace troupe::plans {
namespace {

/// Returns PPO of four models of 1.4B parameters on one H100, in fp32 as our
/// engine stores them: 55 GB, of which the moments of each trained role are 11.
PlanProblem tight_problem() {
  auto problem
    = make_problem(llama_shape(24, 2048, 5632, 16, 16), 1, 1, "h100x8");
  problem.sizes.engine = {.packs_weights = true};
  return problem;
}

bool may_keep_and_offload_moments(const SearchSpace::SpaceCall& call) {
  const auto has = [&](bool offloaded) {
    return std::ranges::any_of(call.options, [&](const CallOption& option) {
      return option.offload.offload_optimizer == offloaded;
    });
  };
  return has(true) && has(false);
}

TEST(SearchSpace, MomentsBelowAQuarterMayLeaveWhereAllRolesFillTheMemory) {
  const auto problem = tight_problem();
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {});
  for (const auto& call : space.calls())
    EXPECT_EQ(call.trains, may_keep_and_offload_moments(call))
      << call.call->name;
}

TEST(SearchSpace, MomentsStayWhereMemoryDoesNotMatter) {
  auto problem = tight_problem();
  problem.hardware.mem_bytes *= 4;
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {});
  for (const auto& call : space.calls())
    for (const auto& option : call.options)
      EXPECT_FALSE(option.offload.offload_optimizer) << call.call->name;
}

/// Returns PPO of models of one layer, so that pipelines do not cut it, with 64
/// experts, most of its weights, of which a token has two, on four devices.
PlanProblem experts_problem() {
  auto shape = llama_shape(1, 128, 256, 8, 4);
  shape.vocab_size = 512;
  shape.experts.count = 64;
  shape.experts.per_token = 2;
  shape.experts.width = 64;
  return make_problem(shape, 1, 4);
}

/// Returns the strategies of a call on all four devices, without suffix z.
std::set<std::string> whole_strategies(const SearchSpace& space,
                                       const std::string& call) {
  std::set<std::string> found;
  for (const auto& one : space.calls())
    for (const auto& option : one.options)
      if (one.call->name == call && option.num_devices == 4) {
        auto strategy = option.strategy;
        strategy.zero = Zero::none;
        found.insert(to_string(strategy));
      }
  return found;
}

TEST(SearchSpace, ExpertsAreDealtToTensorRanksAndInTrainingToAStage) {
  const auto problem = experts_problem();
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {});
  EXPECT_EQ(whole_strategies(space, "actor_gen"),
            (std::set<std::string>{"d4", "d2t2", "d2t2e2", "t4", "t4e4"}));
  EXPECT_EQ(whole_strategies(space, "actor_train"),
            (std::set<std::string>{"d4", "d4e4", "d2t2", "d2t2e2", "d2t2e4",
                                   "t4", "t4e4"}));
}

TEST(SearchSpace, ModelsWithoutExpertsDealNone) {
  const auto problem = tight_problem();
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {});
  for (const auto& call : space.calls())
    for (const auto& option : call.options)
      EXPECT_EQ(option.strategy.ep, 1U) << call.call->name;
}

TEST(SearchSpace, ExpertsDealtToDataRanksTakeTheirPartOfTheMemory) {
  const auto problem = experts_problem();
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {});
  const auto least_held = [&](const std::string& whole) {
    auto least = ~std::uint64_t{0};
    for (const auto& call : space.calls())
      for (const auto& option : call.options) {
        auto strategy = option.strategy;
        if (strategy.zero == Zero::z1)
          strategy.zero = Zero::none; // which it may beat
        if (call.call->name == "actor_train"
            && strategy == parse_strategy(whole))
          least = std::min(least, option.static_bytes);
      }
    return least;
  };
  EXPECT_LT(least_held("d4e4"), least_held("d4") * 2 / 3);
}

TEST(SearchSpace, MeshesShareNoReplicaWhereExpertsAreDealtOtherwise) {
  const CallOption cut{.num_devices = 4, .strategy = parse_strategy("t4")};
  const CallOption dealt{.num_devices = 4, .strategy = parse_strategy("t4e4")};
  EXPECT_TRUE(SearchSpace::shares(dealt, 0, dealt, 0));
  EXPECT_FALSE(SearchSpace::shares(cut, 0, dealt, 0));
}

/// Returns GRPO with adapters of 7B on four devices, where the actor generates,
/// scores and trains.
PlanProblem adapters_problem() {
  auto problem = make_problem(shape_7b(), 1, 4, "h100x8");
  problem.workflow = make_grpo(
    [](Settings& settings) { settings.algorithm.old_logprobs = "recompute"; });
  auto& actor = problem.shapes.at("actor");
  actor.lora = {.rank = 16, .alpha = 16, .targets = lora_targets(actor)};
  return problem;
}

/// Returns the calls that read what another one trains, in order.
std::vector<std::size_t> readers_of(const SearchSpace& space) {
  std::vector<std::size_t> readers;
  for (std::size_t i = 0; i < space.calls().size(); ++i)
    if (space.calls()[i].reads_home())
      readers.push_back(i);
  return readers;
}

/// Lets call `other` share the replica of `one` if it has such an option.
void share_replica(const SearchSpace& space, SpacePoint& point, std::size_t one,
                   std::size_t other) {
  const auto& wanted = space.calls()[one].options[point.options[one]];
  const auto& options = space.calls()[other].options;
  const auto found = std::ranges::find_if(options, [&](const auto& option) {
    return SearchSpace::shares(option, 0, wanted, 0);
  });
  if (found == options.end())
    return;
  point.options[other] = static_cast<std::uint32_t>(found - options.begin());
  point.positions[other] = point.positions[one];
}

// What branch and bound needs: that a choice which does not fit never does.
TEST(SearchSpace, APointOfFewerCallsHasNoLargerPeak) {
  const auto problem = adapters_problem();
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, {});
  const auto readers = readers_of(space);
  ASSERT_EQ(readers.size(), 2U) << "generation and scoring";
  PointCost cost(space, {});
  Walk walk(space, cost, {}, 23);
  for (int i = 0; i < 300; ++i) {
    auto point = walk.random_point();
    if (i % 3 > 0)
      share_replica(space, point, readers[0], readers[1]);
    if (i % 3 > 1)
      share_replica(space, point, readers[0],
                    std::size_t(space.calls()[readers[0]].home));
    const auto whole = peak_bytes(space, point);
    for (std::size_t call = 0; call < point.options.size(); ++call) {
      auto fewer = point;
      fewer.options[call] = not_chosen;
      EXPECT_LE(peak_bytes(space, fewer), whole) << i << " without " << call;
    }
  }
}

// A layer launches the products of 64 experts where tp cuts them or each device
// has all; of a part of them where devices have them between them.
TEST(Search, ExpertsAreDealtWhereTheirLaunchesTakeTheTime) {
  const auto problem = experts_problem();
  const auto found = search_plan(problem, CostModel(problem), {});
  EXPECT_TRUE(check_plan(problem, found.best.plan).ok());
  const auto& strategy = found.best.plan.calls.at("actor_train").strategy;
  EXPECT_GT(strategy.ep, 1U) << to_string(strategy);
}

} // namespace
} // namespace troupe::plans
