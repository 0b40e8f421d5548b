// Attention of ATen's operations where it is hardest on fp32: large scores.
#include "models/gpu/aten_backend.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/reference.hpp"

#include <algorithm>
#include <vector>

namespace troupe::models {
namespace {

// Of values that are all 1, so that the context is the sum of weights. A
// log-sum-exp of some hundreds is rounded by 1e-5.
TEST(AtenAttention, WeightsOfARowSumToOneForLargeScores) {
  constexpr std::int64_t tokens = 24, heads = 2, dim = 8;
  AttentionShape shape{heads, 1, dim};
  const std::vector<std::int64_t> starts{0, tokens};
  shape.cu_seqlens = starts;
  auto qkv = troupe::testing::random_floats(tokens * shape.columns(), 5);
  for (std::size_t i = 0; i < qkv.size(); ++i) {
    const bool is_value
      = static_cast<std::int64_t>(i) % shape.columns() >= (heads + 1) * dim;
    qkv[i] = is_value ? 1.0F : 20 * qkv[i];
  }
  std::vector<float> context(tokens * heads * dim);
  std::vector<float> lse(heads * tokens);
  AtenBackend(at::kCPU).attention(shape, qkv.data(), context.data(),
                                  lse.data());
  EXPECT_GT(std::ranges::max(lse), 200) << "the scores are large";
  for (const float sum : context)
    EXPECT_NEAR(sum, 1, 1e-6);
}

} // namespace
} // namespace troupe::models
