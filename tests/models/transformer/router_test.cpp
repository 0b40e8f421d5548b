// The router beside a slow reference in double: the choice and the weights of
// experts under each family's rule, their gradients by finite differences,
// replayed experts, and the loads that balance them.
#include "models/transformer/router.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace troupe::models {
namespace {

constexpr std::int64_t router_tokens = 23;
constexpr std::int64_t router_experts = 12;
constexpr std::int64_t router_chosen = 3;

struct RouterCase {
  const char* name;
  RouterRule rule;
};

std::vector<float> router_floats(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0F, 1.0F);
  std::vector<float> values(count);
  for (float& x : values)
    x = normal(random);
  return values;
}

// The weights of one token's experts, written down from the papers.
std::map<std::int64_t, double>
slow_router_weights(const RouterRule& rule, const std::vector<double>& logits_E,
                    const float* correction_E) {
  const std::size_t experts = logits_E.size();
  std::vector<double> scores(experts);
  double all = 0;
  for (std::size_t e = 0; e < experts; ++e) {
    scores[e] = rule.score == RouterScore::sigmoid
                  ? 1 / (1 + std::exp(-logits_E[e]))
                  : std::exp(logits_E[e]);
    all += scores[e];
  }
  if (rule.score == RouterScore::softmax)
    for (double& score : scores)
      score /= all;
  std::vector<std::pair<double, std::int64_t>> ranked;
  const std::size_t size = experts / static_cast<std::size_t>(rule.groups);
  std::vector<std::pair<double, std::size_t>> groups;
  const auto compared = [&](std::size_t e) {
    return scores[e] + (correction_E == nullptr ? 0.0 : correction_E[e]);
  };
  for (std::size_t g = 0; g < experts / size; ++g) {
    std::vector<double> own;
    for (std::size_t e = g * size; e < (g + 1) * size; ++e)
      own.push_back(compared(e));
    std::ranges::sort(own, std::greater<>());
    groups.emplace_back(-(own[0] + (size > 1 ? own[1] : 0.0)), g);
  }
  std::ranges::sort(groups);
  std::set<std::size_t> allowed;
  for (std::int64_t i = 0; i < rule.chosen_groups; ++i)
    allowed.insert(groups[static_cast<std::size_t>(i)].second);
  for (std::size_t e = 0; e < experts; ++e)
    if (allowed.contains(e / size))
      ranked.emplace_back(-compared(e), static_cast<std::int64_t>(e));
  std::ranges::sort(ranked);
  std::map<std::int64_t, double> weights;
  double sum = 0;
  for (std::int64_t i = 0; i < router_chosen; ++i) {
    const std::int64_t e = ranked[static_cast<std::size_t>(i)].second;
    sum += weights[e] = scores[static_cast<std::size_t>(e)];
  }
  for (auto& [expert, weight] : weights)
    weight *= rule.scale / (rule.renormalized ? sum : 1.0);
  return weights;
}

class Router : public ::testing::TestWithParam<RouterCase> {
protected:
  RouterShape shape() const {
    return {router_tokens, router_experts, router_chosen, GetParam().rule};
  }
  const float* correction() const {
    return GetParam().rule.corrected ? correction_E_.data() : nullptr;
  }
  Routing routed(const std::vector<float>& logits) const {
    return route(shape(), logits.data(), correction());
  }

  std::vector<float> logits_TE_ = router_floats(
    static_cast<std::size_t>(router_tokens * router_experts), 1);
  std::vector<float> correction_E_
    = router_floats(static_cast<std::size_t>(router_experts), 2);
};

TEST_P(Router, ChoosesAndWeighsLikeTheSlowReference) {
  const Routing routing = routed(logits_TE_);
  std::vector<std::map<std::int64_t, double>> got(router_tokens);
  for (std::size_t e = 0; e + 1 < routing.begin_E.size(); ++e)
    for (auto s = static_cast<std::size_t>(routing.begin_E[e]);
         s < static_cast<std::size_t>(routing.begin_E[e + 1]); ++s)
      got[static_cast<std::size_t>(routing.token_S[s])]
         [static_cast<std::int64_t>(e)]
        = routing.weight_S[s];
  for (std::int64_t t = 0; t < router_tokens; ++t) {
    const auto first = logits_TE_.begin() + t * router_experts;
    const auto want = slow_router_weights(
      GetParam().rule, std::vector<double>(first, first + router_experts),
      correction());
    const auto& own = got[static_cast<std::size_t>(t)];
    ASSERT_EQ(own.size(), want.size()) << "token " << t;
    for (const auto& [expert, weight] : want) {
      ASSERT_TRUE(own.contains(expert)) << "token " << t;
      EXPECT_NEAR(own.at(expert), weight, 1e-6) << "token " << t;
    }
  }
}

TEST_P(Router, GradientEqualsFiniteDifferences) {
  const Routing routing = routed(logits_TE_);
  const std::vector<float> d_weight = router_floats(routing.weight_S.size(), 3);
  std::vector<float> got(logits_TE_.size());
  route_backward(shape(), routing, d_weight.data(), got.data());
  std::map<std::pair<std::int64_t, std::int64_t>, double> factor;
  for (std::size_t e = 0; e + 1 < routing.begin_E.size(); ++e)
    for (auto s = static_cast<std::size_t>(routing.begin_E[e]);
         s < static_cast<std::size_t>(routing.begin_E[e + 1]); ++s)
      factor[{routing.token_S[s], static_cast<std::int64_t>(e)}] = d_weight[s];
  const auto loss = [&](std::int64_t t, std::vector<double> logits) {
    double sum = 0;
    for (const auto& [expert, weight] :
         slow_router_weights(GetParam().rule, logits, correction()))
      sum += factor.at({t, expert}) * weight;
    return sum;
  };
  constexpr double step = 1e-6; // changes no choice of these logits
  for (std::int64_t t = 0; t < router_tokens; ++t)
    for (std::int64_t e = 0; e < router_experts; ++e) {
      const auto first = logits_TE_.begin() + t * router_experts;
      std::vector<double> up(first, first + router_experts);
      std::vector<double> down = up;
      up[static_cast<std::size_t>(e)] += step;
      down[static_cast<std::size_t>(e)] -= step;
      EXPECT_NEAR(got[static_cast<std::size_t>(t * router_experts + e)],
                  (loss(t, up) - loss(t, down)) / (2 * step), 2e-6)
        << "token " << t << " expert " << e;
    }
}

TEST_P(Router, ReplayedExpertsAreTakenWithTheWeightsOfTheirScores) {
  const Routing own = routed(logits_TE_);
  std::vector<std::int32_t> record = own.chosen_TK;
  RouterShape replaying = shape();
  replaying.replayed = {record.data(), router_chosen};
  const Routing same = route(replaying, logits_TE_.data(), correction());
  EXPECT_EQ(same.token_S, own.token_S);
  EXPECT_EQ(same.weight_S, own.weight_S);
  EXPECT_THAT(same.mismatched_T, ::testing::Each(0));
  EXPECT_THAT(own.mismatched_T, ::testing::Each(-1));
  // token 5 goes elsewhere with its best expert, token 6 is not recorded
  std::int32_t other = 0;
  const auto begin = record.begin() + 5 * router_chosen;
  while (std::find(begin, begin + router_chosen, other)
         != begin + router_chosen)
    ++other;
  *begin = other;
  record[static_cast<std::size_t>(6 * router_chosen)] = -1;
  const Routing changed = route(replaying, logits_TE_.data(), correction());
  for (std::size_t t = 0; t < changed.mismatched_T.size(); ++t)
    EXPECT_EQ(changed.mismatched_T[t], t == 5 ? 1 : (t == 6 ? -1 : 0));
  for (std::int64_t i = 0; i < router_tokens * router_chosen; ++i)
    EXPECT_EQ(changed.chosen_TK[static_cast<std::size_t>(i)],
              i == 5 * router_chosen
                ? other
                : own.chosen_TK[static_cast<std::size_t>(i)]);
}

TEST_P(Router, LoadsExceedTheMeanByWholeNumbersThatAddUpToZero) {
  const Routing routing = routed(logits_TE_);
  std::vector<std::int64_t> copies(router_tokens, 1);
  copies[2] = 4;
  std::vector<float> excess(router_experts, 0.0F);
  add_load_excess(shape(), routing, copies, excess.data());
  EXPECT_EQ(std::accumulate(excess.begin(), excess.end(), 0.0F), 0.0F);
  std::vector<std::int64_t> load(router_experts, 0);
  for (std::size_t i = 0; i < routing.chosen_TK.size(); ++i)
    load[static_cast<std::size_t>(routing.chosen_TK[i])]
      += copies[i / router_chosen];
  const std::int64_t all = router_chosen * (router_tokens + 3);
  for (std::size_t e = 0; e < load.size(); ++e)
    EXPECT_EQ(excess[e], static_cast<float>(router_experts * load[e] - all));
}

INSTANTIATE_TEST_SUITE_P(
  Rules, Router,
  ::testing::Values(
    RouterCase{"mixtral", {}}, RouterCase{"qwen3_moe", {.renormalized = false}},
    RouterCase{"sigmoid",
               {.score = RouterScore::sigmoid, .renormalized = false}},
    RouterCase{
      "glm4_moe",
      {.score = RouterScore::sigmoid, .corrected = true, .scale = 1.5}},
    RouterCase{"groups",
               {.score = RouterScore::sigmoid,
                .corrected = true,
                .groups = 4,
                .chosen_groups = 2,
                .scale = 2.5}},
    RouterCase{"softmax_groups",
               {.renormalized = true, .groups = 3, .chosen_groups = 1}}),
  [](const auto& rule) { return std::string(rule.param.name); });

TEST(RouterTies, GoToTheLowestIndex) {
  const std::vector<float> logits(router_experts, 0.5F);
  const Routing routing
    = route({1, router_experts, router_chosen, {}}, logits.data(), nullptr);
  EXPECT_THAT(routing.chosen_TK, ::testing::ElementsAre(0, 1, 2));
}

TEST(Routing, GroupsNeighbouringExpertsUpToTheLargestOfThem) {
  Routing routing;
  routing.begin_E = {0, 2, 2, 5, 5, 6, 7, 9};
  const auto groups = routing.groups_of(1, 6, 0);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].first, 1u);
  EXPECT_EQ(groups[0].begin_G, (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(groups[1].first, 3u);
  EXPECT_EQ(groups[1].begin, 5);
  EXPECT_EQ(groups[1].before, 3);
  EXPECT_EQ(groups[1].begin_G, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(groups[2].begin_G, (std::vector<std::int64_t>{0, 2}));
  const auto whole = routing.groups_of(0, 7, 100);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].begin_G, routing.begin_E) << "with those of no tokens";
  EXPECT_EQ(whole[0].experts(), 7u);
  EXPECT_TRUE(routing.groups_of(3, 1, 100).empty());
}

} // namespace
} // namespace troupe::models
