// Log-probabilities and entropies over the tokens that a sampler kept, and
// their gradient, against double loops that know no other token.
#include "models/transformer/vocab_logprobs.hpp"

#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/reference.hpp"

#include <cmath>
#include <numeric>

namespace troupe::models::kept_tokens {
namespace {

using troupe::testing::at2;
using troupe::testing::Doubles;
using troupe::testing::doubles;
using troupe::testing::random_floats;

constexpr std::int64_t vocab = 53;
constexpr std::int64_t hidden = 8;
constexpr std::int64_t tokens = 9;
constexpr std::size_t rows = 4;

/// Three masks, one of them the target alone, and a row without one.
WantedTokens masked_tokens() {
  return {.positions_R = {0, 2, 3, 7},
          .targets_R = {4, 52, 0, 17},
          .kept = {.offsets_R1 = {0, 3, 4, 4, 9},
                   .ids = {4, 30, 50, 52, 12, 17, 1, 2, 3}}};
}

/// Returns [R logprobs, R entropies] of hidden [T, H] then weight [V, H].
Doubles reference(const Doubles& inputs, double temperature, double cap) {
  const WantedTokens wanted = masked_tokens();
  Doubles out(2 * rows);
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<std::int32_t> ids(
      wanted.kept.ids.begin() + wanted.kept.offsets_R1[r],
      wanted.kept.ids.begin() + wanted.kept.offsets_R1[r + 1]);
    if (ids.empty()) {
      ids.resize(vocab);
      std::iota(ids.begin(), ids.end(), 0);
    }
    Doubles logits;
    double sum = 0;
    for (const std::int32_t id : ids) {
      double own = 0;
      for (std::int64_t i = 0; i < hidden; ++i)
        own += inputs[at2(wanted.positions_R[r], i, hidden)]
               * inputs[at2(tokens + id, i, hidden)];
      own = cap > 0 ? cap * std::tanh(own / cap) : own;
      logits.push_back(own / temperature);
      sum += std::exp(logits.back());
    }
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const double logp = logits[k] - std::log(sum);
      if (ids[k] == wanted.targets_R[r])
        out[r] = logp;
      out[rows + r] -= std::exp(logp) * logp;
    }
  }
  return out;
}

class KeptTokensTest
  : public ::testing::TestWithParam<std::tuple<bool, double>> {};

TEST_P(KeptTokensTest, ValuesAndGradientsEqualTheLoopsOverThemAlone) {
  const auto [keep_logits, cap] = GetParam();
  constexpr double temperature = 0.7;
  auto inputs = random_floats((tokens + vocab) * hidden, 1);
  VocabularyHead head{
    at::from_blob(inputs.data() + tokens * hidden, {vocab, hidden}, at::kFloat),
    temperature};
  head.cap = cap;
  head.backend = &troupe::testing::backend_under_test();
  const WantedTokens wanted = masked_tokens();
  Workspace workspace;
  const TokenStatistics found
    = token_statistics(head, inputs.data(), wanted, workspace, keep_logits);
  head.backend->wait();
  const Doubles want = reference(doubles(inputs), temperature, cap);
  for (std::size_t r = 0; r < rows; ++r) {
    EXPECT_NEAR(found.logprobs_R[r], want[r], 1e-5) << r;
    EXPECT_NEAR(found.entropy_R[r], want[rows + r], 1e-5) << r;
  }
  const auto d_out = random_floats(2 * rows, 2);
  std::vector<float> gradient(inputs.size(), 0.0F);
  token_statistics_backward(
    head, inputs.data(), wanted, found,
    {.d_logprobs_R = d_out.data(), .d_entropy_R = d_out.data() + rows},
    gradient.data(),
    at::from_blob(gradient.data() + tokens * hidden, {vocab, hidden},
                  at::kFloat),
    workspace);
  head.backend->wait();
  const Doubles want_gradient = troupe::testing::numeric_gradient(
    [cap = cap](const Doubles& x) { return reference(x, temperature, cap); },
    doubles(inputs), doubles(d_out));
  for (std::size_t i = 0; i < gradient.size(); ++i)
    ASSERT_NEAR(gradient[i], want_gradient[i], 5e-4) << i;
}
INSTANTIATE_TEST_SUITE_P(LogitsAndCaps, KeptTokensTest,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Values(0.0, 4.0)));

TEST(KeptTokens, ATokenThatIsAloneIsCertain) {
  auto inputs = random_floats((tokens + vocab) * hidden, 3);
  VocabularyHead head{
    at::from_blob(inputs.data() + tokens * hidden, {vocab, hidden}, at::kFloat),
    1.0};
  head.backend = &troupe::testing::backend_under_test();
  Workspace workspace;
  const WantedTokens wanted = masked_tokens();
  const TokenStatistics found
    = token_statistics(head, inputs.data(), wanted, workspace, false);
  head.backend->wait();
  EXPECT_EQ(found.logprobs_R[1], 0.0F);
  EXPECT_EQ(found.entropy_R[1], 0.0F);
}

} // namespace
} // namespace troupe::models::kept_tokens
