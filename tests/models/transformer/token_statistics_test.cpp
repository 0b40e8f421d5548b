// Fused log-probabilities, entropies and their gradients against double loops.
#include "models/transformer/vocab_logprobs.hpp"

#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/reference.hpp"

namespace troupe::models {
namespace {

using troupe::testing::at2;
using troupe::testing::Doubles;
using troupe::testing::doubles;
using troupe::testing::random_floats;

constexpr std::int64_t vocab = 53;
constexpr std::int64_t hidden = 8;
constexpr std::int64_t num_tokens = 9;

const WantedTokens wanted{{0, 2, 3, 7, 8}, {4, 52, 0, 17, 17}};

// [R logprobs, R entropies] of hidden [T, H] then weight [V, H].
Doubles reference(const Doubles& inputs, double temperature) {
  Doubles out(10);
  for (std::size_t r = 0; r < 5; ++r) {
    Doubles logits(vocab);
    double sum = 0;
    for (std::int64_t v = 0; v < vocab; ++v) {
      double& own = logits[static_cast<std::size_t>(v)];
      for (std::int64_t i = 0; i < hidden; ++i)
        own += inputs[at2(wanted.positions_R[r], i, hidden)]
               * inputs[at2(num_tokens + v, i, hidden)];
      own /= temperature;
      sum += std::exp(own);
    }
    for (double& own : logits)
      own -= std::log(sum);
    out[r] = logits[static_cast<std::size_t>(wanted.targets_R[r])];
    for (const double logp : logits)
      out[5 + r] -= std::exp(logp) * logp;
  }
  return out;
}

class TokenStatisticsTest : public ::testing::TestWithParam<bool> {};

TEST_P(TokenStatisticsTest, ValuesAndGradientsEqualTheLoops) {
  const bool keep = GetParam();
  auto inputs = random_floats((num_tokens + vocab) * hidden, 1);
  const auto d_out = random_floats(10, 2);
  VocabularyHead head{at::from_blob(inputs.data() + num_tokens * hidden,
                                    {vocab, hidden}, at::kFloat),
                      0.7};
  head.backend = &troupe::testing::backend_under_test();
  Workspace workspace;
  const TokenStatistics found
    = token_statistics(head, inputs.data(), wanted, workspace, keep);
  head.backend->wait();
  EXPECT_EQ(found.logits_RV != nullptr, keep);
  const Doubles want = reference(doubles(inputs), 0.7);
  for (std::size_t r = 0; r < 5; ++r) {
    EXPECT_NEAR(found.logprobs_R[r], want[r], 1e-4);
    EXPECT_NEAR(found.entropy_R[r], want[5 + r], 1e-4);
  }
  std::vector<float> gradient(inputs.size(), 0.0F);
  token_statistics_backward(head, inputs.data(), wanted, found,
                            {d_out.data(), d_out.data() + 5}, gradient.data(),
                            at::from_blob(gradient.data() + num_tokens * hidden,
                                          {vocab, hidden}, at::kFloat),
                            workspace);
  head.backend->wait();
  const Doubles want_gradient = troupe::testing::numeric_gradient(
    [](const Doubles& x) { return reference(x, 0.7); }, doubles(inputs),
    doubles(d_out));
  for (std::size_t i = 0; i < gradient.size(); ++i)
    ASSERT_NEAR(gradient[i], want_gradient[i], 5e-4) << i;
}
INSTANTIATE_TEST_SUITE_P(KeepLogits, TokenStatisticsTest, ::testing::Bool());

TEST(TokenStatistics, NothingIsComputedWhenNothingIsRequested) {
  auto inputs = random_floats((num_tokens + vocab) * hidden, 3);
  const VocabularyHead head{
    at::from_blob(inputs.data(), {vocab, hidden}, at::kFloat), 1.0};
  Workspace workspace;
  EXPECT_NO_THROW(token_statistics(head, inputs.data(), {}, workspace, true));
}

TEST(ScalarHead, GradientReachesHiddenAndWeight) {
  const auto x = random_floats(3 * hidden, 4);
  auto weight = random_floats(hidden, 5);
  std::vector<float> d_x(x.size(), 0.0F);
  std::vector<float> d_weight(hidden, 0.0F);
  float out[3];
  Backend& backend = troupe::testing::backend_under_test();
  backend.scalar_rows(weight.data(), hidden, x.data(), 3, out);
  const float d_out[] = {1, 0, -2};
  backend.scalar_rows_backward(weight.data(), hidden, x.data(), 3, d_out,
                               d_x.data(), d_weight.data());
  backend.wait();
  for (std::size_t j = 0; j < hidden; ++j) {
    EXPECT_NEAR(d_x[2 * hidden + j], -2 * weight[j], 1e-6);
    EXPECT_NEAR(d_weight[j], x[j] - 2 * x[2 * hidden + j], 1e-5);
  }
}

} // namespace
} // namespace troupe::models
