#include "config/base/error.hpp"
#include "models/losses/user_loss.hpp"

#include <ATen/ATen.h>

#include "troupe/loss.hpp"
#include <gmock/gmock.h>

namespace {

using ::testing::HasSubstr;
using troupe::models::Denominators;

constexpr troupe::Key<float> keep{"keep"};

troupe::Loss kept_nll(const troupe::TrainBatch& b) {
  const at::Tensor nll = -(b[keep] * b.logprobs() * b.mask()).sum();
  return {.loss = nll / b.denominator(), .sums = {{"nll", nll}}};
}

troupe::models::LossEntry entry_of(troupe::LossFunction loss,
                                   troupe::MeanOver mean_over,
                                   bool scalar_head = false) {
  return troupe::models::user_loss_entry(
    "w.train",
    {.name = "train",
     .kind = troupe::detail::UserKind::train,
     .role = "actor",
     .reads = {info(keep)},
     .loss = loss,
     .mean_over = std::move(mean_over)},
    scalar_head);
}

/// Two sequences of 3 and 2 tokens; the second is not kept.
troupe::models::TrainBatch batch() {
  troupe::models::TrainBatch b;
  b.cu_seqlens = {0, 3, 5};
  b.logprobs_T = at::tensor({0.F, -1.F, -2.F, 0.F, -4.F});
  b.mask_T = at::tensor({0.F, 1.F, 1.F, 0.F, 1.F});
  b.columns["keep"] = at::tensor({0.5F, 0.5F, 0.5F, 0.F, 0.F});
  return b;
}

TEST(UserLoss, IsAMeanOverAKeysSum) {
  const auto entry = entry_of(kept_nll, mean_over(keep));
  EXPECT_EQ(entry.mean_over, "keep");
  EXPECT_TRUE(entry.exposes.logprobs);
  // of the mini-batch: this micro-batch's 1.0 and another's 3.0
  const auto made = entry.function(batch(), Denominators{.weights = 4.0}, {});
  EXPECT_FLOAT_EQ(made.loss.item<float>(), 1.5F / 4);
  EXPECT_FLOAT_EQ(made.sums.value("actor/nll"), 1.5);
  EXPECT_FLOAT_EQ(made.sums.value("actor/loss"), 1.5);
}

TEST(UserLoss, IsAMeanOverTokensByDefault) {
  const auto entry = entry_of(kept_nll, {});
  const auto made = entry.function(batch(), Denominators{.tokens = 6.0}, {});
  EXPECT_FLOAT_EQ(made.loss.item<float>(), 0.25F);
  EXPECT_FLOAT_EQ(made.sums.value("actor/nll"), 0.5);
}

TEST(UserLoss, AScalarHeadHasValuesInsteadOfLogprobs) {
  const auto entry = entry_of(kept_nll, {}, true);
  EXPECT_TRUE(entry.exposes.values);
  EXPECT_FALSE(entry.exposes.logprobs);
}

std::string refusal(troupe::LossFunction loss) {
  auto b = batch();
  b.logprobs_T.set_requires_grad(true);
  try {
    entry_of(loss, {}).function(b, Denominators{.tokens = 6.0}, {});
  } catch (const troupe::ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(UserLoss, MustBeOneNumberThatDependsOnWeights) {
  EXPECT_EQ(refusal(kept_nll), "accepted");
  EXPECT_THAT(refusal([](const troupe::TrainBatch& b) {
                return troupe::Loss{.loss = b.logprobs()};
              }),
              HasSubstr("the loss of train gave a tensor of 5 numbers"));
  EXPECT_THAT(refusal([](const troupe::TrainBatch& b) {
                return troupe::Loss{.loss = b[keep].sum()};
              }),
              HasSubstr("the loss of train gave what no weight can change"));
  EXPECT_THAT(refusal([](const troupe::TrainBatch&) { return troupe::Loss{}; }),
              HasSubstr("the loss of train gave no tensor"));
}

TEST(UserLoss, AKeyThatTheCallDoesNotReadIsNamed) {
  auto b = batch();
  b.columns.clear();
  const auto entry = entry_of(kept_nll, {});
  try {
    entry.function(b, Denominators{.tokens = 6.0}, {});
    FAIL();
  } catch (const troupe::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a loss reads key keep; put it into"));
  }
}

} // namespace
