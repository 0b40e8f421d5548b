// KTO's loss and the point that it compares with, against the golden case that
// TRL's trainer agrees with; any split into micro-batches gives the same sum
// (I1).
#include "config/settings/settings.hpp"
#include "models/losses/kto.hpp"
#include "models/rl/kto_functions.hpp"

#include <ATen/ATen.h>

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/loss_case.hpp"
#include <gmock/gmock.h>

namespace troupe::models {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using troupe::testing::column_of;
using troupe::testing::first_samples;
using troupe::testing::LossCase;
using Floats = std::vector<float>;
using TokenIds = std::vector<std::int32_t>;
using Mask = std::vector<std::uint8_t>;

/// Each golden sum as a sequence of a prompt token and two response tokens, of
/// which the first has all of it.
struct KtoCase {
  LossCase c{"kto"};
  std::int64_t count = static_cast<std::int64_t>(c.in.at("logp").values.size());
  LossSettings settings;

  KtoCase() {
    settings.preference.beta = c.params["beta"];
    settings.preference.desirable_weight = c.params["desirable_weight"];
    settings.preference.undesirable_weight = c.params["undesirable_weight"];
  }

  at::Tensor spread(const char* name, std::int64_t first,
                    std::int64_t last) const {
    at::Tensor x_T = at::zeros({3 * (last - first)});
    for (std::int64_t s = first; s < last; ++s)
      x_T[3 * (s - first) + 1] = c.in.at(name).values[s];
    return x_T;
  }

  TrainBatch batch(std::int64_t first, std::int64_t last) const {
    TrainBatch batch;
    for (std::int64_t s = first; s <= last; ++s)
      batch.cu_seqlens.push_back(3 * (s - first));
    batch.logprobs_T = spread("logp", first, last).set_requires_grad(true);
    batch.mask_T = at::tensor({0.0F, 1.0F, 1.0F}).repeat({last - first});
    batch.columns["ref_logprobs"] = spread("ref_logp", first, last);
    batch.columns["kl_point"]
      = at::full({3 * (last - first)}, c.out.at("point").item());
    std::vector<float> labels;
    for (std::int64_t s = first; s < last; ++s)
      labels.insert(labels.end(), 3,
                    static_cast<float>(c.in.at("desirable").values[s]));
    batch.columns["desirable"] = at::tensor(labels);
    return batch;
  }

  /// Trains on sequences [first, last) and checks their gradients.
  LossResult trained(std::int64_t first, std::int64_t last) const {
    const TrainBatch part = batch(first, last);
    auto result
      = kto_loss(part, {.sequences = static_cast<double>(count)}, settings);
    result.loss.backward();
    for (std::int64_t s = first; s < last; ++s)
      for (const std::int64_t t : {1, 2}) // both tokens are of the response
        EXPECT_NEAR(part.logprobs_T.grad()[3 * (s - first) + t].item<float>(),
                    c.out.at("dlogp").values[s], c.tolerance);
    return result;
  }
};

TEST(GoldenKto, HasTheReferencesValueAndGradient) {
  TROUPE_NEEDS_GOLDEN();
  const KtoCase kto;
  const auto result = kto.trained(0, kto.count);
  EXPECT_NEAR(result.loss.item<float>(), kto.c.out.at("loss").item(),
              kto.c.tolerance);
  EXPECT_NEAR(result.sums.value("train/loss"), kto.c.out.at("loss").item(),
              kto.c.tolerance);
}

TEST(GoldenKto, MicroBatchesAddUpToTheBatch_I1) {
  TROUPE_NEEDS_GOLDEN();
  const KtoCase kto;
  MetricSums sums;
  double loss = 0;
  for (std::int64_t s = 0; s < kto.count; s += 2) {
    const auto result = kto.trained(s, std::min(s + 2, kto.count));
    loss += result.loss.item<float>();
    sums.merge(result.sums);
  }
  EXPECT_NEAR(loss, kto.c.out.at("loss").item(), kto.c.tolerance);
  EXPECT_NEAR(sums.value("train/loss"), loss, kto.c.tolerance);
}

TEST(GoldenKto, ThePointIsTheReferencesForAnyOrderOfRows) {
  TROUPE_NEEDS_GOLDEN();
  const KtoCase kto;
  const auto count = static_cast<std::size_t>(kto.count);
  for (const bool backward : {false, true}) {
    std::vector<SampleId> samples;
    std::vector<Floats> policy, reference;
    std::vector<Mask> masks;
    for (std::size_t i = 0; i < count; ++i) {
      const auto s = backward ? count - 1 - i : i;
      samples.emplace_back(std::uint64_t{s});
      // what is not masked, and the first token, does not count
      policy.push_back(
        {9, 9, static_cast<float>(kto.c.in.at("kl_logp").values[s])});
      reference.push_back(
        {1, 2, static_cast<float>(kto.c.in.at("kl_ref_logp").values[s])});
      masks.push_back({1, 0, 1});
    }
    const net::Rows rows(samples,
                         {column_of("kl_loss_mask", DType::u8, masks),
                          column_of("kl_logprobs", DType::f32, policy),
                          column_of("kl_ref_logprobs", DType::f32, reference)});
    const Settings settings;
    const auto result = kto_kl(rows, {settings, StepId{0}, {}});
    const auto points = result.rows.at("kl_point").as<float>();
    ASSERT_EQ(points.size(), count);
    EXPECT_THAT(points, Each(points[0]));
    EXPECT_NEAR(points[0], kto.c.out.at("point").item(), kto.c.tolerance);
    EXPECT_NEAR(result.sums.value("train/kl"), points[0], 1e-6);
    EXPECT_EQ(result.rows.samples, samples);
  }
}

TEST(KtoKl, ThePointIsNotNegative) {
  const net::Rows rows(
    first_samples(1),
    {column_of("kl_loss_mask", DType::u8, std::vector<Mask>{{0, 1}}),
     column_of("kl_logprobs", DType::f32, std::vector<Floats>{{0, -3}}),
     column_of("kl_ref_logprobs", DType::f32, std::vector<Floats>{{0, -1}})});
  const Settings settings;
  const auto result = kto_kl(rows, {settings, StepId{0}, {}});
  EXPECT_EQ(result.rows.at("kl_point").as<float>()[0], 0);
}

/// Rows of prompts 1 2, 3, 4 with completions 5, 6 7 and 8 9 10, the samples in
/// another order than their ids.
net::Rows three_rows() {
  return {
    {SampleId{std::uint64_t{2}}, SampleId{std::uint64_t{0}},
     SampleId{std::uint64_t{1}}},
    {column_of("sequence_ids", DType::i32,
               std::vector<TokenIds>{{4, 8, 9, 10}, {1, 2, 5}, {3, 6, 7}}),
     column_of("loss_mask", DType::u8,
               std::vector<Mask>{{0, 1, 1, 1}, {0, 0, 1}, {0, 1, 1}})}};
}

TEST(KtoMismatch, EachPromptGetsTheCompletionOfTheSampleBefore) {
  Settings settings;
  const auto result
    = kto_mismatch(three_rows(), {settings, StepId{0}, {}}).rows;
  EXPECT_EQ(result.samples, three_rows().samples);
  const auto ids = result.at("kl_sequence_ids").as<std::int32_t>();
  const auto mask = result.at("kl_loss_mask").as<std::uint8_t>();
  EXPECT_THAT(result.at("kl_sequence_ids").lengths, ElementsAre(3, 5, 2));
  EXPECT_THAT(TokenIds(ids.begin(), ids.end()),
              ElementsAre(4, 6, 7, 1, 2, 8, 9, 10, 3, 5));
  EXPECT_THAT(Mask(mask.begin(), mask.end()),
              ElementsAre(0, 1, 1, 0, 0, 1, 1, 1, 0, 1));
}

TEST(KtoMismatch, SequencesAreCutAtTheLimitOfRows) {
  Settings settings;
  settings.data.max_tokens = 4;
  const auto result
    = kto_mismatch(three_rows(), {settings, StepId{0}, {}}).rows;
  EXPECT_THAT(result.at("kl_sequence_ids").lengths, ElementsAre(3, 4, 2));
  EXPECT_THAT(result.at("kl_loss_mask").lengths, ElementsAre(3, 4, 2));
}

} // namespace
} // namespace troupe::models
