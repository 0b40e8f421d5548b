// AdamW against its formula in double, schedules at their corners, and metric
// sums.
#include "models/engine/lr_schedule.hpp"
#include "models/engine/optimizer.hpp"
#include "models/kernels/workspace.hpp"
#include "models/rl/metric_sums.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/reference.hpp"

#include <cmath>

namespace troupe::models {
namespace {

std::vector<ParameterShape> two_parameters() {
  ParameterShape matrix;
  matrix.name = "w";
  matrix.rows = 5;
  matrix.cols = 7;
  ParameterShape vector;
  vector.name = "norm";
  vector.rows = 9;
  vector.vector = true;
  vector.decay = false;
  return {matrix, vector};
}

TEST(AdamW, FollowsItsFormulaAndDecaysMatricesOnly) {
  Parameters parameters(two_parameters(), true);
  OptimizerSettings settings;
  settings.weight_decay = 0.1;
  AdamW adam(parameters, settings);
  const auto start = troupe::testing::random_floats(
    static_cast<std::int64_t>(parameters.plane(Plane::weight).size()), 1);
  std::ranges::copy(start, parameters.plane(Plane::weight).begin());
  std::vector<double> p(start.begin(), start.end());
  std::vector<double> m(p.size());
  std::vector<double> v(p.size());
  constexpr double lr = 0.01;
  constexpr double scale = 0.5;
  for (std::uint64_t t = 1; t <= 4; ++t) {
    const auto g = troupe::testing::random_floats(
      static_cast<std::int64_t>(parameters.plane(Plane::weight).size()), t + 1);
    std::ranges::copy(g, parameters.plane(Plane::grad).begin());
    adam.apply(lr, scale, t);
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double own = g[i] * scale;
      m[i] = 0.9 * m[i] + 0.1 * own;
      v[i] = 0.95 * v[i] + 0.05 * own * own;
      if (i < 35)
        p[i] *= 1 - lr * 0.1;
      const auto power = static_cast<double>(t);
      p[i] -= lr * (m[i] / (1 - std::pow(0.9, power)))
              / (std::sqrt(v[i] / (1 - std::pow(0.95, power))) + 1e-8);
    }
  }
  const auto got = parameters.plane(Plane::weight);
  for (std::size_t i = 0; i < 35; ++i)
    ASSERT_NEAR(got[i], p[i], 1e-6);
  for (std::size_t i = 48; i < 57; ++i) // the vector begins at 64 bytes
    ASSERT_NEAR(got[i], p[i], 1e-6);
}

TEST(AdamW, TheNormCountsEveryElementOnceAndClips) {
  Parameters parameters(two_parameters(), true);
  OptimizerSettings settings;
  settings.clip = 2;
  AdamW adam(parameters, settings);
  adam.clear_gradient();
  parameters.plane(Plane::grad)[3] = 3;
  parameters.plane(Plane::grad)[50] = 4;
  EXPECT_DOUBLE_EQ(adam.squared_norm(), 25);
  EXPECT_DOUBLE_EQ(adam.clip_scale(5), 2 / (5 + 1e-6));
  EXPECT_DOUBLE_EQ(adam.clip_scale(1), 1);
}

TEST(Parameters, OffsetsAreAlignedAndNeighboursAreFused) {
  auto shapes = two_parameters();
  ParameterShape even = shapes[0];
  even.name = "even";
  even.rows = 4;
  even.cols = 4;
  shapes = {even, even, shapes[0], shapes[1]};
  shapes[1].name = "second";
  const Parameters parameters(shapes, false);
  for (std::size_t i = 0; i < shapes.size(); ++i)
    EXPECT_EQ(parameters.offset(i) % 16, 0);
  EXPECT_EQ(parameters.fused_view(0, 2, Plane::weight).size(0), 8);
  EXPECT_FALSE(parameters.fused_view(1, 2, Plane::weight).defined());
  EXPECT_EQ(parameters.find("second"), 1);
  EXPECT_EQ(parameters.find("third"), -1);
}

TEST(LearningRate, WarmsUpFromZeroThenFollowsTheSchedule) {
  OptimizerSettings settings;
  settings.lr = 2;
  settings.warmup = 4;
  settings.schedule = "linear";
  EXPECT_DOUBLE_EQ(learning_rate(settings, 14, 0), 0);
  EXPECT_DOUBLE_EQ(learning_rate(settings, 14, 3), 1.5);
  EXPECT_DOUBLE_EQ(learning_rate(settings, 14, 4), 2);
  EXPECT_DOUBLE_EQ(learning_rate(settings, 14, 9), 1);
  EXPECT_DOUBLE_EQ(learning_rate(settings, 14, 40), 0);
  settings.schedule = "cosine";
  EXPECT_NEAR(learning_rate(settings, 14, 9), 1, 1e-12);
  settings.schedule = "constant";
  EXPECT_DOUBLE_EQ(learning_rate(settings, 14, 13), 2);
  settings.warmup = 0.25;
  EXPECT_EQ(warmup_steps(settings, 14), 3U);
}

TEST(MetricSums, AreMergedByKind) {
  MetricSums a;
  a.add("loss", 6, 3);
  a.add_max("longest", 4);
  a.add_min("shortest", 4);
  a.add_total("tokens", 10);
  MetricSums b;
  b.add("loss", 2, 1);
  b.add_max("longest", 9);
  b.add_min("shortest", 9);
  b.add_total("tokens", 5);
  a.merge(b);
  EXPECT_DOUBLE_EQ(a.value("loss"), 2);
  EXPECT_DOUBLE_EQ(a.value("longest"), 9);
  EXPECT_DOUBLE_EQ(a.value("shortest"), 4);
  EXPECT_DOUBLE_EQ(a.value("tokens"), 15);
  EXPECT_TRUE(std::isnan(a.value("unknown")));
}

TEST(Workspace, ReusesOneBlockAfterTheFirstRound) {
  Workspace workspace;
  const auto round = [&] {
    workspace.reset();
    workspace.take(300000);
    const Workspace::Mark mark = workspace.mark();
    float* first = workspace.take(500000);
    workspace.rewind(mark);
    EXPECT_EQ(workspace.take(500000), first);
    return workspace.capacity();
  };
  const std::int64_t capacity = round();
  EXPECT_EQ(round(), capacity);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(workspace.take(3)) % 64, 0U);
}

} // namespace
} // namespace troupe::models
