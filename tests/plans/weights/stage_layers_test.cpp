#include "plans/cost/move_cost.hpp"
#include "plans/memory/pass_memory.hpp"
#include "plans/weights/layout.hpp"
#include "plans/weights/stage_layers.hpp"

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

#include <set>

namespace troupe::plans {
namespace {

using ::testing::ElementsAre;

std::vector<std::uint32_t> counts(std::uint32_t layers, std::uint32_t stages,
                                  const UnitCosts& costs) {
  const StageLayers cut(layers, stages, costs);
  std::vector<std::uint32_t> counts;
  for (std::uint32_t stage = 0; stage < stages; ++stage)
    counts.push_back(cut.count(stage));
  return counts;
}

double slowest_of(const std::vector<std::uint32_t>& counts,
                  const UnitCosts& costs) {
  double slowest = counts.back() * costs.layer + costs.head;
  for (std::size_t i = 0; i + 1 < counts.size(); ++i)
    slowest = std::max(slowest, counts[i] * costs.layer);
  return slowest;
}

/// Returns the best cost of any cut with a layer on each stage.
double least_slowest(std::uint32_t layers, std::uint32_t stages,
                     const UnitCosts& costs) {
  if (stages == 1)
    return layers * costs.layer + costs.head;
  double best = 1e30;
  for (std::uint32_t last = 1; last + stages - 1 <= layers; ++last) {
    std::vector<std::uint32_t> cut(stages, 0);
    cut.back() = last;
    for (std::uint32_t i = 0; i < layers - last; ++i)
      ++cut[i % (stages - 1)];
    best = std::min(best, slowest_of(cut, costs));
  }
  return best;
}

TEST(StageLayers, TheSlowestStageIsAsFastAsCanBe) {
  for (std::uint32_t layers = 1; layers < 14; ++layers)
    for (std::uint32_t stages = 1; stages <= layers; ++stages)
      for (const double head : {0.0, 0.3, 1.0, 2.5, 40.0}) {
        const UnitCosts costs{.layer = 1, .head = head};
        EXPECT_EQ(slowest_of(counts(layers, stages, costs), costs),
                  least_slowest(layers, stages, costs))
          << layers << " layers, " << stages << " stages, head " << head;
      }
}

// Adapters are on the devices that hold their layers, although their own sizes
// would cut the stages elsewhere.
TEST(StageLayers, AdaptersFollowTheLayersOfTheirModel) {
  ModelShape shape = shape_7b();
  shape.lora = {.rank = 8, .alpha = 16, .targets = lora_targets(shape)};
  const auto all = parameters(shape);
  const auto trained = trained_parameters(shape);
  for (const std::uint32_t pp : {2U, 3U, 8U}) {
    const Strategy strategy{.pp = pp};
    const auto layers_of = [](const std::vector<ParameterShape>& list,
                              const std::vector<Box>& boxes) {
      std::set<std::int32_t> layers;
      for (const Box& box : boxes)
        layers.insert(list[box.parameter].layer);
      return layers;
    };
    const auto whole = first_boxes(all, strategy);
    const auto adapters = first_boxes({trained, shape}, strategy);
    for (std::uint32_t stage = 0; stage < pp; ++stage) {
      auto want = layers_of(all, whole[stage]);
      want.erase(-1);                                 // embedding
      want.erase(static_cast<int>(shape.num_layers)); // norm and head
      EXPECT_EQ(layers_of(trained, adapters[stage]), want) << pp << stage;
    }
  }
}

TEST(StageLayers, AStageHasConsecutiveLayers) {
  for (std::uint32_t layers = 1; layers < 20; ++layers)
    for (std::uint32_t stages = 1; stages <= layers; ++stages) {
      const StageLayers cut(layers, stages, {.layer = 1, .head = 1.5});
      std::vector<std::uint32_t> found(stages, 0);
      for (std::uint32_t layer = 0; layer < layers; ++layer) {
        ++found.at(cut.stage_of(layer));
        EXPECT_GE(cut.stage_of(layer), layer > 0 ? cut.stage_of(layer - 1) : 0);
      }
      for (std::uint32_t stage = 0; stage < stages; ++stage) {
        EXPECT_EQ(cut.count(stage), found[stage]);
        EXPECT_GT(found[stage], 0U);
      }
      EXPECT_EQ(cut.last(), found.back());
    }
}

/// A small model of many tokens: its head costs more than four layers.
ModelShape wordy_shape() {
  ModelShape shape = shape_tiny();
  shape.num_layers = 16;
  const auto layer = unit_costs(shape).layer;
  shape.vocab_size = static_cast<std::int64_t>(
    4.3 * layer / static_cast<double>(shape.hidden_size));
  return shape;
}

std::set<std::int32_t> layers_on(const ModelShape& shape, std::uint32_t stage) {
  const auto all = parameters(shape);
  std::set<std::int32_t> layers;
  for (const auto& box : whole_boxes(all, {.pp = 2}, {.pp = stage}))
    if (const auto layer = all[box.parameter].layer;
        layer >= 0 && layer < shape.num_layers)
      layers.insert(layer);
  return layers;
}

void expect_first_boxes(bool tied, std::uint32_t stages) {
  auto shape = shape_tiny();
  shape.tied_embeddings = tied;
  const auto all = parameters(shape);
  const Strategy strategy{.pp = stages};
  const auto boxes = first_boxes(all, strategy);
  std::vector<int> owners(all.size(), 0);
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    EXPECT_EQ(boxes[stage], whole_boxes(all, strategy, {.pp = stage}));
    for (const auto& box : boxes[stage])
      ++owners[box.parameter];
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(owners[i], all[i].layer < 0 && tied && stages > 1 ? 2 : 1);
}

TEST(StageLayers, EveryParameterIsOnTheStagesThatUseIt) {
  for (const bool tied : {false, true})
    for (const std::uint32_t stages : {1U, 2U, 4U})
      expect_first_boxes(tied, stages);
}

TEST(StageLayers, AHeavyHeadTakesLayersFromTheLastStage) {
  for (const bool tied : {false, true}) {
    auto shape = wordy_shape();
    shape.tied_embeddings = tied;
    EXPECT_THAT(counts(16, 2, unit_costs(shape)), ElementsAre(10, 6));
    EXPECT_EQ(layers_on(shape, 0).size(), 10U);
    EXPECT_EQ(*layers_on(shape, 1).begin(), 10);
    EXPECT_EQ(StackPart(shape, {.pp = 2}, 0).layers, 10U);
    EXPECT_EQ(StackPart(shape, {.pp = 2}, 1).layers, 6U);
  }
  auto critic = wordy_shape();
  critic.scalar_head = true;
  EXPECT_THAT(counts(16, 2, unit_costs(critic)), ElementsAre(8, 8));
  EXPECT_EQ(layers_on(critic, 0).size(), 8U);
}

void expect_same_cuts(const ModelShape& shape) {
  const auto layers = static_cast<std::uint32_t>(shape.num_layers);
  for (std::uint32_t stages = 1; stages <= layers; ++stages) {
    const auto cut = counts(layers, stages, unit_costs(shape));
    EXPECT_EQ(cut, counts(layers, stages, unit_costs(parameters(shape))));
    EXPECT_EQ(cut,
              counts(layers, stages, unit_bytes(shape, DType::bf16).costs));
  }
}

TEST(StageLayers, AllCallersSplitLayersAlike) {
  for (auto shape : {shape_tiny(), shape_7b(), shape_mixtral(), wordy_shape()})
    for (const bool tied : {false, true}) {
      shape.tied_embeddings = tied;
      expect_same_cuts(shape);
    }
}

} // namespace
} // namespace troupe::plans
