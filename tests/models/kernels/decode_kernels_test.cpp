// Kernels of generation against plain loops in double, and their independence
// of neighbouring rows (I1).
#include "config/base/error.hpp"
#include "config/model/model_shape.hpp"
#include "models/kernels/decode_kernels.hpp"
#include "models/kernels/kv_cache.hpp"
#include "models/kernels/mlp.hpp"
#include "models/kernels/norm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace troupe::models {
namespace {

std::vector<float> normal_floats(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> floats(count);
  for (float& x : floats)
    x = normal(engine);
  return floats;
}

struct AttentionCase {
  std::int64_t head_dim;
  std::int64_t tokens;
};

class Attend : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(Attend, EqualsTheDefinition) {
  const auto [dim, tokens] = GetParam();
  ModelShape shape;
  shape.num_layers = 2;
  shape.num_kv_heads = 2;
  shape.head_dim = dim;
  KvCache cache(shape);
  cache.reset(3, tokens);
  const CachedHead head{cache.keys(1, 2, 1).floats(),
                        cache.values(1, 2, 1).floats(), cache.capacity(),
                        cache.value_stride(), dim};
  const auto count = static_cast<std::size_t>(tokens * dim);
  const auto width = static_cast<std::size_t>(dim);
  const auto keys = normal_floats(count, 1);
  const auto values = normal_floats(count, 2);
  const auto query = normal_floats(width, 3);
  for (std::int64_t t = 0; t < tokens; ++t)
    append_to_cache(head, t, keys.data() + t * dim, values.data() + t * dim);
  AlignedFloats scores(cache.capacity());
  std::vector<float> got(width);
  attend(head, query.data(), tokens, scores.data(), got.data());

  double total = 0;
  std::vector<double> want(width);
  for (std::int64_t t = 0; t < tokens; ++t) {
    double score = 0;
    for (std::size_t d = 0; d < width; ++d)
      score += double{query[d]} * keys[static_cast<std::size_t>(t) * width + d];
    const double weight = std::exp(score);
    total += weight;
    for (std::size_t d = 0; d < width; ++d)
      want[d] += weight * values[static_cast<std::size_t>(t) * width + d];
  }
  for (std::size_t d = 0; d < width; ++d)
    EXPECT_NEAR(got[d], want[d] / total, 2e-5) << d;
}

INSTANTIATE_TEST_SUITE_P(
  Shapes, Attend,
  ::testing::Values(AttentionCase{16, 1}, AttentionCase{16, 17},
                    AttentionCase{64, 64}, AttentionCase{64, 100},
                    AttentionCase{128, 49}, AttentionCase{24, 5},
                    AttentionCase{96, 200}),
  [](const auto& entry) {
    return "dim" + std::to_string(entry.param.head_dim) + "_tokens"
           + std::to_string(entry.param.tokens);
  });

TEST(DecodeKernels, RmsNormAndSwigluEqualTheirDefinitions) {
  constexpr std::size_t width = 37;
  const auto x = normal_floats(2 * width, 4);
  const auto weight = normal_floats(width, 5);
  std::vector<float> out(2 * width);
  norm({2, width, 1e-5F}, x.data(), {weight.data()}, out.data());
  for (std::size_t i = 0; i < 2; ++i) {
    double squares = 0;
    for (std::size_t j = 0; j < width; ++j)
      squares += double{x[i * width + j]} * x[i * width + j];
    const double scale = 1.0 / std::sqrt(squares / width + 1e-5);
    for (std::size_t j = 0; j < width; ++j)
      EXPECT_NEAR(out[i * width + j], x[i * width + j] * scale * weight[j],
                  1e-5);
  }
  std::vector<float> act(width);
  mlp_unit({1, width}, x.data(), act.data());
  for (std::size_t j = 0; j < width; ++j) {
    const double gate = x[j];
    EXPECT_NEAR(act[j], gate / (1 + std::exp(-gate)) * x[width + j], 1e-5);
  }
}

TEST(KvCache, AllocatesTheLowestFreeSlotWithinItsBytes) {
  ModelShape shape;
  shape.num_layers = 3;
  shape.num_kv_heads = 2;
  shape.head_dim = 24;
  KvCache cache(shape);
  // 20 tokens round up to 32; values are padded from 24 to 32.
  EXPECT_EQ(cache.slot_bytes(20), 3U * 2 * 32 * (24 + 32) * sizeof(float));
  cache.reset(3, 20);
  EXPECT_EQ(cache.take_slot(), 0);
  EXPECT_EQ(cache.take_slot(), 1);
  EXPECT_EQ(cache.take_slot(), 2);
  EXPECT_THROW(cache.take_slot(), InvariantError);
  cache.free_slot(2);
  cache.free_slot(0);
  EXPECT_EQ(cache.take_slot(), 0);
  EXPECT_EQ(cache.take_slot(), 2);
}

} // namespace
} // namespace troupe::models
