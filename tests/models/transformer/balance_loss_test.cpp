// The balance loss beside the papers' formula in double, its gradient by finite
// differences, and its sum over sequences that share a prompt.
#include "models/transformer/balance_loss.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <random>
#include <vector>

namespace troupe::models {
namespace {

constexpr std::int64_t balanced_experts = 6;
constexpr std::int64_t balanced_chosen = 2;

// Three sequences of 4, 1 and 5 tokens.
PackedTokens three_sequences() {
  PackedTokens batch;
  batch.cu_seqlens = {0, 4, 5, 10};
  batch.balance_weight = 0.3;
  return batch;
}

std::vector<float> balance_logits(std::int64_t tokens) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal(0.0F, 1.0F);
  std::vector<float> logits(
    static_cast<std::size_t>(tokens * balanced_experts));
  for (float& x : logits)
    x = normal(random);
  return logits;
}

RouterShape balance_shape(RouterScore score, std::int64_t tokens) {
  return {.tokens = tokens,
          .experts = balanced_experts,
          .chosen = balanced_chosen,
          .rule = {.score = score},
          .keeps_scores = true};
}

// The loss of one sequence whose tokens chose these experts.
double slow_balance_loss(RouterScore score, const std::vector<float>& logits_TE,
                         const std::vector<std::int32_t>& chosen_TK,
                         const std::vector<std::size_t>& tokens) {
  const auto experts = static_cast<std::size_t>(balanced_experts);
  const auto chosen = static_cast<std::size_t>(balanced_chosen);
  double loss = 0;
  for (std::size_t e = 0; e < experts; ++e) {
    double load = 0;
    double mean = 0;
    for (const std::size_t t : tokens) {
      for (std::size_t k = 0; k < chosen; ++k)
        load += chosen_TK[t * chosen + k] == static_cast<std::int32_t>(e);
      const auto value = [&](std::size_t i) {
        const double logit = logits_TE[t * experts + i];
        return score == RouterScore::sigmoid ? 1 / (1 + std::exp(-logit))
                                             : std::exp(logit);
      };
      double all = 0;
      for (std::size_t i = 0; i < experts; ++i)
        all += value(i);
      mean += value(e) / all;
    }
    const auto count = static_cast<double>(tokens.size());
    loss += load * static_cast<double>(experts)
            / (static_cast<double>(chosen) * count) * mean / count;
  }
  return loss;
}

class BalanceLoss : public ::testing::TestWithParam<RouterScore> {};

TEST_P(BalanceLoss, IsThatOfTheFormulaForEachSequence) {
  const auto batch = three_sequences();
  const auto logits = balance_logits(10);
  const auto shape = balance_shape(GetParam(), 10);
  const Routing routing = route(shape, logits.data(), nullptr);
  const auto losses = balance_losses(shape, routing, batch);
  ASSERT_EQ(losses.size(), 3U);
  const std::vector<std::vector<std::size_t>> tokens{
    {0, 1, 2, 3}, {4}, {5, 6, 7, 8, 9}};
  for (std::size_t s = 0; s < losses.size(); ++s)
    EXPECT_NEAR(
      losses[s],
      slow_balance_loss(GetParam(), logits, routing.chosen_TK, tokens[s]), 1e-6)
      << "sequence " << s;
}

TEST_P(BalanceLoss, HasTheGradientOfFiniteDifferences) {
  const auto batch = three_sequences();
  const auto logits = balance_logits(10);
  const auto shape = balance_shape(GetParam(), 10);
  const Routing routing = route(shape, logits.data(), nullptr);
  std::vector<float> gradient(logits.size(), 0.0F);
  balance_backward(shape, routing, batch, gradient.data());
  // the choice of experts is fixed: it has no gradient
  const auto sum = [&](const std::vector<float>& at) {
    return slow_balance_loss(GetParam(), at, routing.chosen_TK, {0, 1, 2, 3})
           + slow_balance_loss(GetParam(), at, routing.chosen_TK, {4})
           + slow_balance_loss(GetParam(), at, routing.chosen_TK,
                               {5, 6, 7, 8, 9});
  };
  constexpr float step = 1.0F / 256;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    auto up = logits;
    auto down = logits;
    up[i] += step;
    down[i] -= step;
    const double slope
      = batch.balance_weight * (sum(up) - sum(down)) / (2 * step);
    EXPECT_NEAR(gradient[i], slope, 2e-6) << "logit " << i;
  }
}

// A prompt of 3 tokens that two responses continue, or twice its own copy.
TEST_P(BalanceLoss, OfASharedPromptIsThatOfItsCopies_I1) {
  const auto experts = static_cast<std::size_t>(balanced_experts);
  PackedTokens shared;
  shared.cu_seqlens = {0, 3, 5, 9};
  shared.continues = {-1, 0, 0};
  shared.balance_weight = 0.5;
  PackedTokens copied;
  copied.cu_seqlens = {0, 5, 12};
  copied.balance_weight = 0.5;
  const std::vector<std::size_t> of_copy{0, 1, 2, 3, 4, 0, 1, 2, 5, 6, 7, 8};
  const auto logits = balance_logits(9);
  std::vector<float> copies;
  for (const std::size_t t : of_copy)
    copies.insert(
      copies.end(), logits.begin() + static_cast<std::ptrdiff_t>(t * experts),
      logits.begin() + static_cast<std::ptrdiff_t>((t + 1) * experts));
  const auto shape = balance_shape(GetParam(), 9);
  const auto copied_shape = balance_shape(GetParam(), 12);
  const Routing routing = route(shape, logits.data(), nullptr);
  const Routing copied_routing = route(copied_shape, copies.data(), nullptr);
  const auto losses = balance_losses(shape, routing, shared);
  EXPECT_EQ(losses, balance_losses(copied_shape, copied_routing, copied));
  std::vector<float> gradient(logits.size(), 0.0F);
  balance_backward(shape, routing, shared, gradient.data());
  std::vector<float> of_copies(copies.size(), 0.0F);
  balance_backward(copied_shape, copied_routing, copied, of_copies.data());
  std::vector<float> want(logits.size(), 0.0F);
  for (std::size_t t = 0; t < of_copy.size(); ++t)
    for (std::size_t e = 0; e < experts; ++e)
      want[of_copy[t] * experts + e] += of_copies[t * experts + e];
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(gradient[i], want[i], 1e-7) << "logit " << i;
}

INSTANTIATE_TEST_SUITE_P(Scores, BalanceLoss,
                         ::testing::Values(RouterScore::softmax,
                                           RouterScore::sigmoid),
                         [](const auto& score) {
                           return score.param == RouterScore::softmax
                                    ? std::string("softmax")
                                    : std::string("sigmoid");
                         });

} // namespace
} // namespace troupe::models
