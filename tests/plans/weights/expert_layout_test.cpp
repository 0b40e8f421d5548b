// Layouts of a model with experts: which device has which expert, what z1 cuts,
// and moves between any two of them.
#include "plans/weights/layout.hpp"
#include "plans/weights/move_plan.hpp"

#include "tests/support/plans/support.hpp"
#include "tests/support/plans/toy_model.hpp"
#include "tests/support/plans/written_once.hpp"
#include <gmock/gmock.h>

#include <map>
#include <string>
#include <tuple>

namespace troupe::plans {
namespace {

constexpr std::int32_t dealt_experts = 8;

/// Two layers, the second with experts before its norm.
std::vector<ParameterShape> model_with_experts() {
  auto all = troupe::testing::toy_model(2, 8, false);
  const auto norm = std::ranges::find(all, "norm1", &ParameterShape::name);
  std::vector<ParameterShape> experts;
  for (std::int32_t e = 0; e < dealt_experts; ++e)
    for (const std::int8_t split : {0, 1}) {
      auto matrix = all[1];
      matrix.name = (split == 0 ? "up1." : "down1.") + std::to_string(e);
      matrix.rows = split == 0 ? 12 : 8;
      matrix.cols = split == 0 ? 8 : 12;
      matrix.split_dim = split;
      matrix.layer = 1;
      matrix.expert = e;
      experts.push_back(matrix);
    }
  all.insert(norm, experts.begin(), experts.end());
  return all;
}

Layout expert_layout(const std::vector<ParameterShape>& model,
                     const Strategy& strategy, LayoutKind kind) {
  return make_layout(model, strategy, ranks(0, strategy.num_devices() - 1),
                     DType::f32, kind);
}

using Element = std::tuple<std::uint32_t, std::int64_t, std::int64_t>;

void count_elements(const Box& box, std::map<Element, int>& holders) {
  for (auto row = box.row0; row < box.row1; ++row)
    for (auto col = box.col0; col < box.col1; ++col)
      ++holders[{box.parameter, row, col}];
}

/// Returns how often the shards hold each element of the experts.
std::map<Element, int>
holders_of_experts(const std::vector<ParameterShape>& model,
                   const Layout& layout) {
  std::map<Element, int> holders;
  for (const Shard& shard : layout.shards)
    for (const Box& box : shard.boxes)
      if (model[box.parameter].expert >= 0)
        count_elements(box, holders);
  return holders;
}

std::int64_t elements_of_experts(const std::vector<ParameterShape>& model) {
  std::int64_t elements = 0;
  for (const auto& shape : model)
    elements += shape.expert >= 0 ? shape.num_elements() : 0;
  return elements;
}

class ExpertLayout : public ::testing::TestWithParam<const char*> {};

TEST_P(ExpertLayout, DealsWholeExpertsInRunsOfEqualLength) {
  const auto model = model_with_experts();
  const auto strategy = parse_strategy(GetParam());
  const auto layout = expert_layout(model, strategy, LayoutKind::weights);
  const auto run = dealt_experts / static_cast<std::int32_t>(strategy.ep);
  for (const Shard& shard : layout.shards)
    for (const Box& box : shard.boxes) {
      const ParameterShape& shape = model[box.parameter];
      if (shape.expert < 0)
        continue;
      EXPECT_EQ(box.num_elements(), shape.num_elements()) << shape.name;
      EXPECT_EQ(static_cast<std::uint32_t>(shape.expert / run),
                expert_rank_of(strategy, shard.where))
        << shape.name;
    }
  const auto copies = static_cast<int>(strategy.dp * strategy.tp / strategy.ep);
  const auto holders = holders_of_experts(model, layout);
  EXPECT_EQ(static_cast<std::int64_t>(holders.size()),
            elements_of_experts(model));
  for (const auto& [element, count] : holders)
    EXPECT_EQ(count, copies);
}

TEST_P(ExpertLayout, Z1CutsExpertsOverTheRanksThatHoldThem) {
  const auto model = model_with_experts();
  auto strategy = parse_strategy(GetParam());
  strategy.zero = Zero::z1;
  const auto layout = expert_layout(model, strategy, LayoutKind::optimizer);
  const auto holders = holders_of_experts(model, layout);
  EXPECT_EQ(static_cast<std::int64_t>(holders.size()),
            elements_of_experts(model));
  for (const auto& [element, count] : holders)
    EXPECT_EQ(count, 1);
}

TEST_P(ExpertLayout, IsReachedFromAnyOtherWithEveryByteWrittenOnce_I3) {
  const auto model = model_with_experts();
  const Cluster cluster{.nodes = 2, .devices_per_node = 8};
  const auto here
    = expert_layout(model, parse_strategy(GetParam()), LayoutKind::weights);
  for (const char* other : {"d1", "t4", "t4e4", "d4e4", "d2t2", "d2t2e4",
                            "p2t2e2", "d4z3", "p2d2e2"}) {
    SCOPED_TRACE(other);
    const auto there
      = expert_layout(model, parse_strategy(other), LayoutKind::weights);
    for (const auto& [from, to] :
         {std::pair(&here, &there), std::pair(&there, &here)}) {
      const auto plan = move_plan(*from, *to, cluster);
      for (const Shard& shard : to->shards)
        ASSERT_NO_FATAL_FAILURE(expect_written_once(shard, plan, *from));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, ExpertLayout,
                         ::testing::Values("t2e2", "t4e4", "d2e2", "d4e2",
                                           "d4e4", "d2t2e2", "d2t2e4", "d4t2e4",
                                           "p2t2e2", "d2p2t2e4"),
                         [](const auto& strategy) {
                           return std::string(strategy.param);
                         });

} // namespace
} // namespace troupe::plans
