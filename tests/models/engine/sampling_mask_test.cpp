// Sampling masks through the engine, under every strategy: what a truncating
// sampler drew from is what scoring and training compute (I1).
#include "config/base/error.hpp"
#include "models/engine/engine.hpp"
#include "models/engine/kept_reader.hpp"
#include "models/generate/generate_options.hpp"
#include "models/parallel/parameters.hpp"
#include "plans/memory/mask_memory.hpp"

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include "tests/support/models/with_advantages.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace troupe::models {
namespace {

using troupe::testing::column_of;
using troupe::testing::first_samples;
using troupe::testing::ParallelReplica;
using troupe::testing::random_prompts;
using troupe::testing::TempFolder;
using troupe::testing::wide_shape;
using troupe::testing::with_advantages;
using troupe::testing::write_random_model;

constexpr std::int32_t num_ids = 75; // of wide_shape
constexpr double temperature = 0.3;

class SamplingMask : public ::testing::TestWithParam<const char*> {
protected:
  SamplingMask() {
    write_random_model(folder_ / "actor", wide_shape(), 1);
  }
  Engine::Spec spec() const {
    return troupe::testing::trained_actor(folder_ / "actor");
  }
  static GenerateOptions truncating() {
    return {.max_new_tokens = 10,
            .temperature = temperature,
            .top_k = 9,
            .top_p = 0.8,
            .seed = 5,
            .max_sequences = 4,
            .stop_ids = {3},
            .record = {.logprobs = ResponseLogprobs::masked}};
  }
  net::Rows responses(ParallelReplica& replica) const {
    return replica.generate(random_prompts(num_ids), truncating());
  }
  // Responses with advantages that change sign within each.
  net::Rows to_train_on() const {
    ParallelReplica alone(spec(), "d1");
    return with_advantages(responses(alone));
  }
  static TrainSpec train(std::int64_t micro_batch_tokens = 40) {
    TrainSpec train;
    train.fn = "ppo_actor_loss";
    train.mini_batches = {first_samples(6)};
    train.micro_batch_tokens = micro_batch_tokens;
    train.temperature = temperature;
    train.loss.entropy_coef = 0.1;
    return train;
  }
  static InferOptions scoring() {
    return {
      .temperature = temperature, .entropy = true, .micro_batch_tokens = 40};
  }
  using Keys = std::vector<std::string>;
  static net::Rows without_masks(const net::Rows& rows) {
    return net::select_keys(
      rows, Keys{"sequence_ids", "loss_mask", "logprobs", "advantages"});
  }

  TempFolder folder_;
};

TEST_P(SamplingMask, IsThatOfOneDevice_I2) {
  ParallelReplica alone(spec(), "d1");
  ParallelReplica split(spec(), GetParam());
  const net::Rows want = responses(alone);
  const net::Rows got = responses(split);
  for (const char* key : {"sequence_ids", "kept_counts", "kept_ids"})
    EXPECT_THAT(got.at(key).as<std::int32_t>(),
                ::testing::ElementsAreArray(want.at(key).as<std::int32_t>()))
      << key;
  const auto counts = want.at("kept_counts").as<std::int32_t>();
  const std::set<std::int32_t> found(counts.begin(), counts.end());
  EXPECT_LE(*found.rbegin(), 9);
  EXPECT_GT(found.size(), 3U) << "masks of many lengths";
}

TEST_P(SamplingMask, MakesScoringComputeWhatWasSampled_I1) {
  ParallelReplica replica(spec(), GetParam());
  net::Rows rows = responses(replica);
  const net::Rows masked = replica.infer("logprobs", rows, scoring());
  const auto sampled = rows.at("logprobs").as<float>();
  EXPECT_THAT(
    masked.at("logprobs").as<float>(),
    ::testing::Pointwise(::testing::FloatNear(2e-5F),
                         std::vector<float>(sampled.begin(), sampled.end())));
  const net::Rows whole = replica.infer(
    "logprobs", net::select_keys(rows, Keys{"sequence_ids", "loss_mask"}),
    scoring());
  double gap = 0;
  for (std::size_t t = 0; t < sampled.size(); ++t)
    gap += sampled[t] - whole.at("logprobs").as<float>()[t];
  const auto mask = rows.at("loss_mask").as<std::uint8_t>();
  EXPECT_GT(gap / std::accumulate(mask.begin(), mask.end(), 0.0), 0.1)
    << "without masks the sampler's probabilities are larger";
  for (std::size_t t = 0; t < sampled.size(); ++t)
    EXPECT_LE(masked.at("entropy").as<float>()[t], std::log(9.0) + 1e-5);
}

TEST_P(SamplingMask, TrainsLikeOneDevice_I1) {
  const net::Rows rows = to_train_on();
  ParallelReplica alone(spec(), "d1");
  ParallelReplica split(spec(), GetParam());
  const MetricSums want = alone.train(train(/*micro_batch_tokens=*/1000), rows);
  const MetricSums got = split.train(train(), rows);
  for (const char* name : {"actor/pg_loss", "actor/entropy", "actor/grad_norm"})
    EXPECT_NEAR(got.value(name), want.value(name),
                1e-5 * std::max(1.0, std::abs(want.value(name))))
      << name;
  const auto want_grad = alone.plane(Plane::grad);
  double largest = 0;
  for (const auto& [name, values] : split.plane(Plane::grad))
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, double{std::abs(values[i])});
      ASSERT_NEAR(values[i], want_grad.at(name)[i], 1e-5) << name << " " << i;
    }
  EXPECT_GT(largest, 1e-3);
}

TEST_P(SamplingMask, TheFirstRatioIsOne) {
  const net::Rows rows = to_train_on();
  ParallelReplica with(spec(), GetParam());
  ParallelReplica without(spec(), GetParam());
  const MetricSums masked = with.train(train(), rows);
  const MetricSums whole = without.train(train(), without_masks(rows));
  EXPECT_LT(masked.value("training/rollout_probs_diff_mean"), 1e-5);
  EXPECT_LT(std::abs(masked.value("actor/ppo_kl")), 1e-5);
  EXPECT_EQ(masked.value("actor/pg_clipfrac"), 0);
  EXPECT_GT(whole.value("training/rollout_probs_diff_mean"), 1e-2);
  EXPECT_GT(whole.value("actor/ppo_kl"), 0.1);
}
INSTANTIATE_TEST_SUITE_P(Strategies, SamplingMask,
                         ::testing::Values("d2", "t2", "t4", "p2", "d2t2s",
                                           "d2p2z1", "d2z3", "d2p2t2z3s",
                                           "c2t2"),
                         [](const auto& test) {
                           return std::string(test.param);
                         });

class SamplingMaskAlone : public SamplingMask {};

TEST_P(SamplingMaskAlone, OfTheWholeVocabularyChangesNothing) {
  const net::Rows rows = to_train_on();
  net::Rows all = without_masks(rows);
  std::vector<std::vector<std::int32_t>> counts;
  std::vector<std::vector<std::int32_t>> ids;
  for (const std::uint32_t length : rows.at("sequence_ids").lengths) {
    counts.emplace_back(length, num_ids);
    ids.emplace_back();
    for (std::uint32_t t = 0; t < length; ++t)
      for (std::int32_t id = 0; id < num_ids; ++id)
        ids.back().push_back(id);
  }
  all.add(column_of("kept_counts", DType::i32, counts));
  all.add(column_of("kept_ids", DType::i32, ids));
  ParallelReplica one(spec(), GetParam());
  ParallelReplica other(spec(), GetParam());
  one.train(train(), all);
  other.train(train(), without_masks(rows));
  EXPECT_EQ(one.plane(Plane::grad), other.plane(Plane::grad));
}

// Top-k alone keeps as many ids of each token as the plans count.
TEST_P(SamplingMaskAlone, TakesTheMemoryThatPlansCount) {
  constexpr std::uint32_t samples = 6, prompt = 8, response = 24;
  ParallelReplica replica(spec(), GetParam());
  auto options = truncating();
  options.max_new_tokens = response;
  options.top_p = 1;
  options.stop_ids = {};
  const std::vector prompts(samples, std::vector<std::int32_t>(prompt, 5));
  const net::Rows rows = replica.generate(
    {first_samples(samples), {column_of("prompt_ids", DType::i32, prompts)}},
    options);
  const plans::BatchSizes sizes{.samples_per_step = samples,
                                .max_sequence_tokens = prompt + response,
                                .max_new_tokens = response};
  const auto is_near = [](double counted, std::uint64_t taken) {
    return ::testing::Value(counted / static_cast<double>(taken),
                            ::testing::DoubleNear(1, 0.15));
  };
  const auto stored
    = net::select_keys(rows, Keys{"kept_counts", "kept_ids"}).size_bytes();
  EXPECT_TRUE(
    is_near(plans::mask_row_bytes(sizes, samples, options.top_k), stored))
    << stored;
  WantedTokens wanted;
  const auto ids = rows.at("sequence_ids").as<std::int32_t>();
  const auto mask = rows.at("loss_mask").as<std::uint8_t>();
  for (std::size_t t = 0; t < ids.size(); ++t)
    if (mask[t] != 0) {
      wanted.entries_R.push_back(static_cast<std::int64_t>(t));
      wanted.targets_R.push_back(ids[t]);
    }
  std::vector<std::size_t> all(samples);
  std::iota(all.begin(), all.end(), std::size_t{0});
  KeptReader(rows).read(all, num_ids, wanted);
  const auto a_copy
    = wanted.kept.ids.capacity() * sizeof(std::int32_t)
      + wanted.kept.offsets_R1.capacity() * sizeof(std::int64_t);
  EXPECT_TRUE(
    is_near(plans::mask_batch_bytes(sizes, samples, options.top_k), 2 * a_copy))
    << a_copy;
}

TEST_P(SamplingMaskAlone, ThatIsImpossibleIsAMistakeOfTheUser) {
  ParallelReplica replica(spec(), GetParam());
  const net::Rows good = responses(replica);
  const auto score = [&](std::int32_t first_id, std::int32_t more) {
    net::Rows rows = net::select_keys(good, Keys{"sequence_ids", "loss_mask"});
    const net::Column& ids = good.at("kept_ids");
    const net::Column& counts = good.at("kept_counts");
    net::Column own_ids = net::make_column(ids.key, DType::i32, ids.lengths,
                                           ids.as<std::int32_t>().data());
    net::Column own_counts = net::make_column(
      counts.key, DType::i32, counts.lengths, counts.as<std::int32_t>().data());
    own_ids.as<std::int32_t>()[0] = first_id;
    own_counts.as<std::int32_t>()[0] += more;
    rows.add(std::move(own_ids));
    rows.add(std::move(own_counts));
    replica.infer("logprobs", rows, scoring());
  };
  EXPECT_NO_THROW(score(good.at("kept_ids").as<std::int32_t>()[0], 0));
  EXPECT_THROW(score(num_ids, 0), ConfigError);
  EXPECT_THROW(score(-1, 0), ConfigError);
  EXPECT_THROW(score(good.at("kept_ids").as<std::int32_t>()[0], 1),
               ConfigError);
}
INSTANTIATE_TEST_SUITE_P(OneDevice, SamplingMaskAlone, ::testing::Values("d1"));

} // namespace
} // namespace troupe::models
