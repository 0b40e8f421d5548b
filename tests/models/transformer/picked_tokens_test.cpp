// Log-probabilities of picked tokens, their gradient, and the likeliest tokens
// against double loops.
#include "models/transformer/vocab_logprobs.hpp"

#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/reference.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::models::picked_tokens {
namespace {

using troupe::testing::at2;
using troupe::testing::Doubles;
using troupe::testing::doubles;
using troupe::testing::random_floats;

constexpr std::int64_t vocab = 53;
constexpr std::int64_t hidden = 8;
constexpr std::int64_t tokens = 9;
constexpr std::int64_t picks = 3;
constexpr double temperature = 0.7;
constexpr double cap = 4;

const WantedTokens wanted{.positions_R = {0, 2, 3, 7},
                          .targets_R = {4, 52, 0, 17},
                          .picked_RK
                          = {1, 50, 2, 52, 0, 7, 9, 8, 10, 17, 16, 3},
                          .picks = picks};
constexpr std::size_t rows = 4;

// Log-probabilities [V] of a wanted row; inputs are hidden [T, H] then weight
// [V, H].
Doubles reference_row(const Doubles& inputs, std::size_t r) {
  Doubles logits(vocab);
  double sum = 0;
  for (std::int64_t v = 0; v < vocab; ++v) {
    double& own = logits[static_cast<std::size_t>(v)];
    for (std::int64_t i = 0; i < hidden; ++i)
      own += inputs[at2(wanted.positions_R[r], i, hidden)]
             * inputs[at2(tokens + v, i, hidden)];
    own = cap * std::tanh(own / cap) / temperature;
    sum += std::exp(own);
  }
  for (double& own : logits)
    own -= std::log(sum);
  return logits;
}

// [R, K] the picked ones.
Doubles reference(const Doubles& inputs) {
  Doubles out;
  for (std::size_t r = 0; r < rows; ++r) {
    const Doubles row = reference_row(inputs, r);
    for (std::size_t k = 0; k < picks; ++k)
      out.push_back(
        row[static_cast<std::size_t>(wanted.picked_RK[r * picks + k])]);
  }
  return out;
}

class PickedTokensTest : public ::testing::TestWithParam<bool> {
protected:
  std::vector<float> inputs_ = random_floats((tokens + vocab) * hidden, 1);
  VocabularyHead head_{at::from_blob(inputs_.data() + tokens * hidden,
                                     {vocab, hidden}, at::kFloat),
                       temperature};
  void SetUp() override {
    head_.cap = cap;
    head_.backend = &troupe::testing::backend_under_test();
  }
};

TEST_P(PickedTokensTest, ValuesAndGradientsEqualTheLoops) {
  Workspace workspace;
  const TokenStatistics found
    = token_statistics(head_, inputs_.data(), wanted, workspace, GetParam());
  head_.backend->wait();
  const Doubles want = reference(doubles(inputs_));
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(found.picked.logprobs_RK[i], want[i], 1e-4) << i;
  const auto d_picked = random_floats(rows * picks, 2);
  std::vector<float> sums;
  for (std::size_t r = 0; r < rows; ++r)
    sums.push_back(std::accumulate(
      d_picked.begin() + std::ptrdiff_t(r * picks),
      d_picked.begin() + std::ptrdiff_t((r + 1) * picks), 0.0F));
  std::vector<float> gradient(inputs_.size(), 0.0F);
  token_statistics_backward(
    head_, inputs_.data(), wanted, found,
    {.d_picked_RK = d_picked.data(), .d_picked_sums_R = sums.data()},
    gradient.data(),
    at::from_blob(gradient.data() + tokens * hidden, {vocab, hidden},
                  at::kFloat),
    workspace);
  head_.backend->wait();
  const Doubles want_gradient = troupe::testing::numeric_gradient(
    &reference, doubles(inputs_), doubles(d_picked));
  for (std::size_t i = 0; i < gradient.size(); ++i)
    ASSERT_NEAR(gradient[i], want_gradient[i], 5e-4) << i;
}

TEST_P(PickedTokensTest, TheLikeliestAreThoseOfASort) {
  // Equal rows of the weight: equal logits, which go by id.
  std::copy_n(inputs_.data() + (tokens + 5) * hidden, hidden,
              inputs_.data() + (tokens + 30) * hidden);
  for (const std::int64_t count : {1L, 5L, vocab}) {
    Workspace workspace;
    const TopTokens found
      = top_tokens(head_, inputs_.data(), wanted, count, workspace);
    ASSERT_EQ(found.per_row, count);
    for (std::size_t r = 0; r < rows; ++r) {
      const Doubles row = reference_row(doubles(inputs_), r);
      std::vector<std::int32_t> order(vocab);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
        return row[static_cast<std::size_t>(a)]
               > row[static_cast<std::size_t>(b)];
      });
      for (std::size_t k = 0; k < static_cast<std::size_t>(count); ++k) {
        const std::size_t entry = r * static_cast<std::size_t>(count) + k;
        EXPECT_EQ(found.ids_RK[entry], order[k]) << r << " " << k;
        EXPECT_NEAR(found.logprobs_RK[entry],
                    row[static_cast<std::size_t>(order[k])], 1e-4);
      }
    }
  }
}

TEST_P(PickedTokensTest, MoreThanTheVocabularyAreTheVocabulary) {
  Workspace workspace;
  const TopTokens found
    = top_tokens(head_, inputs_.data(), wanted, vocab + 4, workspace);
  EXPECT_EQ(found.per_row, vocab);
  EXPECT_EQ(found.ids_RK.size(), rows * vocab);
}
INSTANTIATE_TEST_SUITE_P(KeepLogits, PickedTokensTest, ::testing::Bool());

} // namespace
} // namespace troupe::models::picked_tokens
