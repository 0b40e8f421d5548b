// Activations and their gradients against double precision.
#include "models/kernels/mlp.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"

#include <cmath>
#include <numbers>
#include <vector>

namespace troupe::models {
namespace {

struct Want {
  double value;
  double slope;
};

Want gelu_of(double x) {
  const double share = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
  return {x * share, share + x * density};
}

TEST(MlpUnit, GeluIsXTimesTheNormalDistributionWithItsSlope) {
  Backend& backend = troupe::testing::backend_under_test();
  std::vector<float> x;
  for (int i = -1200; i <= 1200; ++i)
    x.push_back(static_cast<float>(i) / 100);
  const auto width = static_cast<std::int64_t>(x.size());
  const MlpShape shape{1, width, Activation::gelu, /*gated=*/false};
  std::vector<float> act(x.size()), in = x, d_act(x.size(), 1.0F);
  backend.mlp_unit(shape, x.data(), act.data());
  backend.mlp_unit_backward(shape, in.data(), d_act.data());
  backend.wait();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Want want = gelu_of(x[i]);
    ASSERT_NEAR(act[i], want.value, 1e-6) << x[i];
    ASSERT_NEAR(d_act[i], want.value, 1e-6) << x[i];
    ASSERT_NEAR(in[i], want.slope, 1e-6) << x[i];
  }
}

} // namespace
} // namespace troupe::models
