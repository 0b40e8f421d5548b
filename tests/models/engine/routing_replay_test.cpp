// Routing replay through the engine, under every strategy: generation records
// the experts of each token, scoring and training take them (I1, I2); and the
// corrections that balance experts move by their loads.
#include "config/base/error.hpp"
#include "models/engine/engine.hpp"
#include "models/generate/generate_options.hpp"
#include "models/parallel/parameters.hpp"

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include "tests/support/models/with_advantages.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
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

constexpr std::int32_t replay_ids = 75; // of wide_shape
constexpr std::int64_t replay_experts = 8;
constexpr std::int64_t replay_chosen = 3;
constexpr std::size_t replay_width
  = 3 * replay_chosen; // of the layers with experts

ModelShape replay_shape() {
  ModelShape shape = wide_shape();
  shape.family = "glm4_moe";
  shape.rope.share = 0.5;
  shape.experts = {
    .count = replay_experts,
    .per_token = replay_chosen,
    .width = 13,
    .shared_width = 26,
    .dense_layers = {true, false, false, false},
    .router = {.score = RouterScore::sigmoid, .corrected = true, .scale = 1.5}};
  return shape;
}

class RoutingReplay : public ::testing::TestWithParam<const char*> {
protected:
  RoutingReplay() {
    write_random_model(folder_ / "actor", replay_shape(), 1);
  }
  Engine::Spec spec(double router_bias_rate = 0) const {
    Engine::Spec spec = troupe::testing::trained_actor(folder_ / "actor");
    spec.optimizer.router_bias_rate = router_bias_rate;
    return spec;
  }
  net::Rows responses(ParallelReplica& replica) const {
    return replica.generate(random_prompts(replay_ids),
                            {.max_new_tokens = 10,
                             .seed = 5,
                             .max_sequences = 4,
                             .stop_ids = {3},
                             .record = {.experts = true}});
  }
  net::Rows to_train_on() const {
    ParallelReplica alone(spec(), "d1");
    return with_advantages(responses(alone));
  }
  static TrainSpec train(std::int64_t micro_batch_tokens = 40) {
    TrainSpec train;
    train.fn = "ppo_actor_loss";
    train.mini_batches = {first_samples(6)};
    train.micro_batch_tokens = micro_batch_tokens;
    train.temperature = 1;
    return train;
  }
  using Keys = std::vector<std::string>;
  static net::Rows without_experts(const net::Rows& rows) {
    return net::select_keys(
      rows, Keys{"sequence_ids", "loss_mask", "logprobs", "advantages"});
  }
  // The record with each expert changed by `change`.
  template <class Change>
  static net::Rows with_experts(const net::Rows& rows, const Change& change) {
    net::Rows other = without_experts(rows);
    const net::Column& record = rows.at("routed_experts");
    std::vector<std::vector<std::int32_t>> experts;
    std::size_t at = 0;
    for (const std::uint32_t length : record.lengths) {
      experts.emplace_back();
      for (std::uint32_t i = 0; i < length; ++i)
        experts.back().push_back(change(record.as<std::int32_t>()[at++]));
    }
    other.add(column_of("routed_experts", DType::i32, experts));
    return other;
  }
  static net::Rows with_other_experts(const net::Rows& rows) {
    return with_experts(rows, [](std::int32_t expert) {
      return expert < 0
               ? expert
               : static_cast<std::int32_t>((expert + 1) % replay_experts);
    });
  }
  static std::vector<float> score(ParallelReplica& replica,
                                  const net::Rows& rows) {
    const net::Rows found
      = replica.infer("logprobs", rows, {.micro_batch_tokens = 40});
    const auto logprobs = found.at("logprobs").as<float>();
    return {logprobs.begin(), logprobs.end()};
  }

  TempFolder folder_;
};

TEST_P(RoutingReplay, RecordsTheExpertsOfOneDevice_I2) {
  ParallelReplica alone(spec(), "d1");
  ParallelReplica split(spec(), GetParam());
  const net::Rows want = responses(alone);
  const net::Rows got = responses(split);
  const auto record = want.at("routed_experts").as<std::int32_t>();
  EXPECT_THAT(got.at("routed_experts").as<std::int32_t>(),
              ::testing::ElementsAreArray(record));
  const auto mask = want.at("loss_mask").as<std::uint8_t>();
  ASSERT_EQ(record.size(), mask.size() * replay_width);
  // the token before each drawn one went to experts; others are not recorded
  for (std::size_t t = 0; t + 1 < mask.size(); ++t)
    for (std::size_t i = 0; i < replay_width; ++i)
      EXPECT_EQ(record[t * replay_width + i] >= 0, mask[t + 1] == 1)
        << "entry " << t;
}

TEST_P(RoutingReplay, OfTheSameWeightsChangesNothing) {
  ParallelReplica replica(spec(), GetParam());
  const net::Rows rows = to_train_on();
  EXPECT_THAT(score(replica, rows),
              ::testing::Pointwise(::testing::FloatNear(2e-6F),
                                   score(replica, without_experts(rows))));
  const MetricSums sums = replica.train(train(), rows);
  EXPECT_EQ(sums.value("moe/routing_mismatch"), 0);
  EXPECT_GT(sums.value("moe/balance"), 1.0 / replay_experts);
  EXPECT_LT(sums.value("moe/balance"), 1.0);
}

TEST_P(RoutingReplay, SendsTokensToTheRecordedExperts) {
  ParallelReplica alone(spec(), "d1");
  ParallelReplica replica(spec(), GetParam());
  const net::Rows rows = to_train_on();
  const net::Rows other = with_other_experts(rows);
  const std::vector<float> got = score(replica, other);
  EXPECT_THAT(got, ::testing::Pointwise(::testing::FloatNear(2e-5F),
                                        score(alone, other)));
  const std::vector<float> own = score(alone, rows);
  double gap = 0;
  for (std::size_t t = 0; t < got.size(); ++t)
    gap = std::max(gap, double{std::abs(got[t] - own[t])});
  EXPECT_GT(gap, 1e-2) << "other experts compute something else";
  const MetricSums sums = replica.train(train(), other);
  EXPECT_GT(sums.value("moe/routing_mismatch"), 0.2);
}

TEST_P(RoutingReplay, TrainsLikeOneDevice_I1) {
  const net::Rows rows = with_other_experts(to_train_on());
  ParallelReplica alone(spec(), "d1");
  ParallelReplica split(spec(), GetParam());
  const MetricSums want = alone.train(train(/*micro_batch_tokens=*/1000), rows);
  const MetricSums got = split.train(train(), rows);
  for (const char* name : {"moe/balance", "moe/routing_mismatch"})
    EXPECT_NEAR(got.value(name), want.value(name), 1e-9) << name;
  for (const char* name : {"actor/pg_loss", "actor/grad_norm"})
    EXPECT_NEAR(got.value(name), want.value(name),
                1e-5 * std::max(1.0, std::abs(want.value(name))))
      << name;
  const auto want_grad = alone.plane(Plane::grad);
  for (const auto& [name, values] : split.plane(Plane::grad))
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], want_grad.at(name)[i], 1e-5) << name << " " << i;
}

TEST_P(RoutingReplay, CorrectionsMoveAgainstTheLoadsOfExperts_I1) {
  const net::Rows rows = to_train_on();
  ParallelReplica alone(spec(0.01), "d1");
  ParallelReplica split(spec(0.01), GetParam());
  ParallelReplica still(spec(), "d1");
  alone.train(train(/*micro_batch_tokens=*/1000), rows);
  const auto before = split.plane(Plane::weight);
  split.train(train(), rows);
  const auto grads = alone.plane(Plane::grad);
  const auto after = split.plane(Plane::weight);
  std::size_t found = 0;
  for (const auto& [name, values] : after) {
    if (!name.ends_with("router.correction"))
      continue;
    ++found;
    EXPECT_EQ(values, alone.plane(Plane::weight).at(name)) << "the same bits";
    bool has_moved = false;
    for (std::size_t e = 0; e < values.size(); ++e) {
      const float load = grads.at(name)[e];
      const float want = load == 0 ? 0.0F : (load > 0 ? -0.01F : 0.01F);
      EXPECT_FLOAT_EQ(values[e], before.at(name)[e] + want) << name << " " << e;
      has_moved |= want != 0;
    }
    EXPECT_TRUE(has_moved);
  }
  EXPECT_EQ(found, 3U);
  still.train(train(), rows);
  for (const auto& [name, values] : still.plane(Plane::weight))
    if (name.ends_with("router.correction")) {
      EXPECT_EQ(values, before.at(name)) << "a rate of 0";
    }
}

INSTANTIATE_TEST_SUITE_P(Strategies, RoutingReplay,
                         ::testing::Values("d1", "d2", "t2", "t4", "p2",
                                           "d2t2s", "d2p2z1", "d2z3"),
                         [](const auto& strategy) {
                           return std::string(strategy.param);
                         });

class RoutingReplayAlone : public RoutingReplay {};

TEST_P(RoutingReplayAlone, RefusesTheRecordOfAnotherModel) {
  ParallelReplica replica(spec(), GetParam());
  const net::Rows rows = to_train_on();
  const net::Rows wrong = with_experts(rows, [](std::int32_t expert) {
    return expert == 2 ? static_cast<std::int32_t>(replay_experts) : expert;
  });
  EXPECT_THROW(score(replica, wrong), ConfigError);
  net::Rows narrow = without_experts(rows);
  std::vector<std::vector<std::int32_t>> one;
  for (const std::uint32_t length : rows.at("logprobs").lengths)
    one.emplace_back(length, 0);
  narrow.add(column_of("routed_experts", DType::i32, one));
  EXPECT_THROW(score(replica, narrow), ConfigError);
}
INSTANTIATE_TEST_SUITE_P(OneDevice, RoutingReplayAlone,
                         ::testing::Values("d1"));

} // namespace
} // namespace troupe::models
