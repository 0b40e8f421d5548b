// Whole training runs against transformers: SFT, a reward model and one PPO
// update, to the tolerances of golden training/. The engine does everything:
// denominators, micro-batches, clip, AdamW, schedule.
#include "models/engine/engine.hpp"
#include "models/parallel/parameters.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/golden.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::models {
namespace {

using troupe::testing::column_of;
using troupe::testing::first_samples;
using troupe::testing::GoldenTensors;
using troupe::testing::read_golden;
using troupe::testing::split;

struct TrainingCase {
  std::filesystem::path folder;
  nlohmann::json meta;
  GoldenTensors data;

  explicit TrainingCase(const std::string& name)
    : folder(troupe::testing::golden_folder() / "training" / name),
      meta(troupe::testing::read_golden_meta(folder)),
      data(read_golden(folder / "data.safetensors")) {}

  std::unique_ptr<Engine> engine(const char* part, bool scalar_head,
                                 const char* optimizer = "optimizer",
                                 std::uint64_t steps = 1) const {
    Engine::Spec spec;
    spec.backend = &troupe::testing::backend_under_test();
    spec.folder = folder / part;
    spec.role = part;
    spec.scalar_head = scalar_head;
    spec.trainable = true;
    spec.optimizer = troupe::testing::golden_optimizer(meta["spec"][optimizer]);
    spec.total_optimizer_steps = steps;
    auto made = std::make_unique<Engine>(spec);
    made->load_weights();
    return made;
  }

  // Compares a plane of the engine with tensors by HF name.
  void expect_plane(Engine& engine, Plane plane, const std::string& file,
                    double allowed) const {
    const GoldenTensors want = read_golden(folder / file);
    const Parameters& parameters = engine.parameters();
    ASSERT_EQ(want.size(), parameters.shapes().size());
    const auto found = parameters.read(plane);
    for (std::size_t p = 0; p < want.size(); ++p) {
      const std::string& name = parameters.shapes()[p].name;
      const auto& values = want.at(name).values;
      const float* got = found.floats() + parameters.offset(p);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(got[i], values[i], allowed) << name << " entry " << i;
    }
  }
  double tolerance(const char* name) const {
    return meta["tolerance_abs"][name];
  }
};

// Steps of samples from golden offsets.
std::vector<std::vector<SampleId>>
steps_of(const std::vector<double>& cu_samples) {
  std::vector<std::vector<SampleId>> steps;
  for (std::size_t s = 0; s + 1 < cu_samples.size(); ++s) {
    auto& own = steps.emplace_back();
    for (auto i = static_cast<std::uint64_t>(cu_samples[s]);
         i < static_cast<std::uint64_t>(cu_samples[s + 1]); ++i)
      own.emplace_back(i);
  }
  return steps;
}

// Runs step by step and compares the trajectory at each step.
void expect_trajectory(const TrainingCase& c, Engine& engine,
                       const net::Rows& rows, TrainSpec spec,
                       const std::vector<std::vector<SampleId>>& steps,
                       const std::map<std::string, std::string>& columns) {
  const GoldenTensors want = read_golden(c.folder / "trajectory.safetensors");
  for (std::size_t s = 0; s < steps.size(); ++s) {
    spec.mini_batches = {steps[s]};
    RunContext context;
    const MetricSums sums = engine.train(spec, rows, context);
    for (const auto& [golden, metric] : columns)
      ASSERT_NEAR(sums.value(metric), want.at(golden).values[s], 1e-4)
        << metric << " of step " << s;
    const double norm = want.at("grad_norm").values[s];
    ASSERT_NEAR(sums.value("train/grad_norm"), norm, 1e-3 * norm);
    const double rate = want.at("lr").values[s];
    ASSERT_NEAR(sums.value("train/lr"), rate, 1e-6 * rate + 1e-15);
    if (s == 0)
      c.expect_plane(engine, Plane::grad, "grads_step0.safetensors",
                     c.tolerance("grads_step0"));
  }
  c.expect_plane(engine, Plane::weight, "final.safetensors",
                 c.tolerance("final"));
}

class GoldenSft : public ::testing::TestWithParam<int> {};

TEST_P(GoldenSft, FollowsTheReferenceForAnyMicroBatching) {
  TROUPE_NEEDS_GOLDEN();
  const TrainingCase c(GetParam() == 4 ? "sft_micro_batches" : "sft");
  const auto& cu = c.data.at("cu_seqlens").values;
  const auto ids = split(c.data.at("tokens").ints(), cu);
  const net::Rows rows(first_samples(ids.size()),
                       {column_of("sequence_ids", DType::i32, ids),
                        column_of("loss_mask", DType::u8,
                                  split(c.data.at("loss_mask").mask(), cu))});
  const auto steps = steps_of(c.data.at("step_cu_sequences").values);
  const auto engine = c.engine("init", false, "optimizer", steps.size());
  TrainSpec spec;
  spec.fn = "sft_loss";
  spec.micro_batches = GetParam();
  expect_trajectory(c, *engine, rows, spec, steps,
                    {{"loss", "train/loss"}, {"tokens", "train/tokens"}});
}
INSTANTIATE_TEST_SUITE_P(MicroBatches, GoldenSft, ::testing::Values(1, 4, 8));

TEST(GoldenTraining, RewardModelFollowsTheReference) {
  TROUPE_NEEDS_GOLDEN();
  const TrainingCase c("reward");
  const auto chosen = split(c.data.at("chosen_tokens").ints(),
                            c.data.at("chosen_cu_seqlens").values);
  const auto rejected = split(c.data.at("rejected_tokens").ints(),
                              c.data.at("rejected_cu_seqlens").values);
  const net::Rows rows(first_samples(chosen.size()),
                       {column_of("chosen_ids", DType::i32, chosen),
                        column_of("rejected_ids", DType::i32, rejected)});
  const auto steps = steps_of(c.data.at("step_cu_pairs").values);
  const auto engine = c.engine("init", true, "optimizer", steps.size());
  TrainSpec spec;
  spec.fn = "reward_loss";
  spec.micro_batches = 2;
  expect_trajectory(c, *engine, rows, spec, steps,
                    {{"loss", "train/loss"},
                     {"accuracy", "train/accuracy"},
                     {"chosen_score", "train/chosen_score"},
                     {"rejected_score", "train/rejected_score"}});
}

std::vector<std::vector<std::int32_t>> pair_ids(const TrainingCase& c,
                                                const std::string& which) {
  return split(c.data.at(which + "_tokens").ints(),
               c.data.at(which + "_cu_seqlens").values);
}

// chosen_ and rejected_ ids and masks of the golden case.
net::Rows pairs_of(const TrainingCase& c) {
  std::vector<net::Column> columns;
  for (const std::string which : {"chosen", "rejected"}) {
    const auto ids = pair_ids(c, which);
    std::vector<std::vector<std::uint8_t>> masks;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto prompt
        = static_cast<std::size_t>(c.data.at("prompt_lengths").values[i]);
      masks.emplace_back(prompt, 0).resize(ids[i].size(), 1);
    }
    columns.push_back(column_of(which + "_ids", DType::i32, ids));
    columns.push_back(column_of(which + "_loss_mask", DType::u8, masks));
  }
  return {first_samples(pair_ids(c, "chosen").size()), columns};
}

class GoldenDpo : public ::testing::TestWithParam<int> {};

// The golden case has sums of the reference's log-probabilities over the
// response: all of it is put on the last token.
TEST_P(GoldenDpo, FollowsTheReferenceForAnyMicroBatching) {
  TROUPE_NEEDS_GOLDEN();
  const TrainingCase c("dpo");
  net::Rows rows = pairs_of(c);
  for (const std::string which : {"chosen", "rejected"}) {
    std::vector<std::vector<float>> reference;
    const auto& sums = c.data.at("ref_" + which + "_logps").values;
    for (const auto& ids : pair_ids(c, which)) {
      auto& own = reference.emplace_back(ids.size(), 0.0F);
      own.back() = static_cast<float>(sums[reference.size() - 1]);
    }
    rows.add(column_of(which + "_ref_logprobs", DType::f32, reference));
  }
  const auto steps = steps_of(c.data.at("step_cu_pairs").values);
  const auto engine = c.engine("init", false, "optimizer", steps.size());
  TrainSpec spec;
  spec.fn = "dpo_loss";
  spec.loss.preference.beta = c.meta["spec"]["beta"];
  spec.micro_batches = GetParam();
  expect_trajectory(c, *engine, rows, spec, steps,
                    {{"loss", "train/loss"},
                     {"accuracy", "train/accuracy"},
                     {"chosen_reward", "train/chosen_reward"},
                     {"rejected_reward", "train/rejected_reward"}});
}
INSTANTIATE_TEST_SUITE_P(MicroBatches, GoldenDpo, ::testing::Values(1, 3));

TEST(GoldenDpoReference, LogprobsOfPairsEqualTheReference) {
  TROUPE_NEEDS_GOLDEN();
  const TrainingCase c("dpo");
  Engine::Spec spec;
  spec.backend = &troupe::testing::backend_under_test();
  spec.folder = c.folder / "ref";
  spec.role = "ref";
  Engine engine(spec);
  engine.load_weights();
  RunContext context;
  const net::Rows found = engine.infer("logprobs", pairs_of(c), context, {});
  for (const std::string which : {"chosen", "rejected"}) {
    const auto& column = found.at(which + "_logprobs");
    const auto offsets = column.offsets();
    const auto logprobs = column.as<float>();
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      double sum = 0;
      for (auto t = offsets[i]; t < offsets[i + 1]; ++t)
        sum += logprobs[t];
      EXPECT_NEAR(sum, c.data.at("ref_" + which + "_logps").values[i], 1e-4);
    }
  }
}

// Response arrays of the golden case at their tokens, 0 elsewhere.
std::vector<std::vector<float>> spread(const TrainingCase& c,
                                       const char* name) {
  const auto packed
    = split(c.data.at(name).floats(), c.data.at("response_cu_seqlens").values);
  std::vector<std::vector<float>> out;
  for (std::size_t i = 0; i < packed.size(); ++i) {
    const auto prompt
      = static_cast<std::size_t>(c.data.at("prompt_lengths").values[i]);
    auto& own = out.emplace_back(prompt, 0.0F);
    own.insert(own.end(), packed[i].begin(), packed[i].end());
  }
  return out;
}

/// Marks the token after each prompt with 1.
std::vector<std::vector<std::uint8_t>> response_masks(const TrainingCase& c,
                                                      const auto& ids) {
  std::vector<std::vector<std::uint8_t>> masks;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto& own = masks.emplace_back(
      static_cast<std::size_t>(c.data.at("prompt_lengths").values[i]), 0);
    own.resize(ids[i].size(), 1);
  }
  return masks;
}

net::Rows ppo_rows(const TrainingCase& c) {
  const auto ids
    = split(c.data.at("tokens").ints(), c.data.at("cu_seqlens").values);
  auto old_values = spread(c, "old_values");
  for (auto& own : old_values)
    own.push_back(0.0F); // the value after the last token
  return {first_samples(ids.size()),
          {column_of("sequence_ids", DType::i32, ids),
           column_of("loss_mask", DType::u8, response_masks(c, ids)),
           column_of("logprobs", DType::f32, spread(c, "old_logprobs")),
           column_of("advantages", DType::f32, spread(c, "advantages")),
           column_of("returns", DType::f32, spread(c, "returns")),
           column_of("values", DType::f32, old_values)}};
}

class GoldenPpo : public ::testing::TestWithParam<int> {};

TEST_P(GoldenPpo, ActorUpdateEqualsTheReference) {
  TROUPE_NEEDS_GOLDEN();
  const TrainingCase c("ppo");
  const GoldenTensors scalars = read_golden(c.folder / "scalars.safetensors");
  const auto engine = c.engine("actor", false);
  TrainSpec spec;
  spec.fn = "ppo_actor_loss";
  spec.mini_batches = {first_samples(6)};
  spec.micro_batches = GetParam();
  spec.loss.entropy_coef = c.meta["spec"]["entropy_coef"];
  RunContext context;
  const MetricSums sums = engine->train(spec, ppo_rows(c), context);
  const auto near = [&](const char* metric, const char* golden) {
    EXPECT_NEAR(sums.value(metric), scalars.at(golden).item(),
                c.tolerance("scalars"))
      << metric;
  };
  near("actor/pg_loss", "pg_loss");
  near("actor/entropy", "entropy");
  near("actor/ppo_kl", "approx_kl");
  near("actor/pg_clipfrac", "clip_fraction");
  near("actor/grad_norm", "actor_grad_norm");
  c.expect_plane(*engine, Plane::grad, "actor_grads.safetensors",
                 c.tolerance("actor_grads"));
  c.expect_plane(*engine, Plane::weight, "actor_after.safetensors",
                 c.tolerance("actor_after"));
}

TEST_P(GoldenPpo, CriticUpdateEqualsTheReference) {
  TROUPE_NEEDS_GOLDEN();
  const TrainingCase c("ppo");
  const GoldenTensors scalars = read_golden(c.folder / "scalars.safetensors");
  const auto engine = c.engine("critic", true, "critic_optimizer");
  TrainSpec spec;
  spec.fn = "ppo_critic_loss";
  spec.mini_batches = {first_samples(6)};
  spec.micro_batches = GetParam();
  RunContext context;
  const MetricSums sums = engine->train(spec, ppo_rows(c), context);
  EXPECT_NEAR(sums.value("critic/vf_loss"), scalars.at("vf_loss").item(), 1e-4);
  EXPECT_NEAR(sums.value("critic/vf_clipfrac"),
              scalars.at("vf_clip_fraction").item(), 1e-4);
  c.expect_plane(*engine, Plane::grad, "critic_grads.safetensors",
                 c.tolerance("critic_grads"));
  c.expect_plane(*engine, Plane::weight, "critic_after.safetensors",
                 c.tolerance("critic_after"));
}
INSTANTIATE_TEST_SUITE_P(MicroBatches, GoldenPpo, ::testing::Values(1, 3));

/// One advantage per sample, at each token of its response.
net::Rows grpo_rows(const TrainingCase& c) {
  const auto ids
    = split(c.data.at("tokens").ints(), c.data.at("cu_seqlens").values);
  const auto masks = response_masks(c, ids);
  auto advantages = spread(c, "old_logprobs");
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t t = 0; t < ids[i].size(); ++t)
      advantages[i][t]
        = masks[i][t] * static_cast<float>(c.data.at("advantages").values[i]);
  return {first_samples(ids.size()),
          {column_of("sequence_ids", DType::i32, ids),
           column_of("loss_mask", DType::u8, masks),
           column_of("logprobs", DType::f32, spread(c, "old_logprobs")),
           column_of("ref_logprobs", DType::f32, spread(c, "ref_logprobs")),
           column_of("advantages", DType::f32, advantages)}};
}

struct GrpoMean {
  const char* name;
  LossMean mean;
  const char* loss;  ///< of scalars
  const char* grads; ///< the golden file; "": none
};

class GoldenGrpo : public ::testing::TestWithParam<GrpoMean> {};

TEST_P(GoldenGrpo, UpdateEqualsTheReference) {
  TROUPE_NEEDS_GOLDEN();
  const TrainingCase c("grpo");
  const GoldenTensors scalars = read_golden(c.folder / "scalars.safetensors");
  for (const std::uint32_t micro_batches : {1U, 4U}) {
    const auto engine = c.engine("actor", false);
    TrainSpec spec;
    spec.fn = "ppo_actor_loss";
    spec.mini_batches = {first_samples(12)};
    spec.micro_batches = micro_batches;
    spec.loss.clip.low = c.meta["spec"]["clip_low"];
    spec.loss.clip.high = c.meta["spec"]["clip_high"];
    spec.loss.kl_in_loss = true;
    spec.loss.kl_estimator = "k3";
    spec.loss.kl_coef = c.meta["spec"]["beta"];
    spec.loss.mean = GetParam().mean;
    spec.loss.horizon = c.meta["spec"]["max_response_length"];
    RunContext context;
    const MetricSums sums = engine->train(spec, grpo_rows(c), context);
    EXPECT_NEAR(sums.value("actor/pg_loss")
                  + spec.loss.kl_coef * sums.value("actor/kl_loss"),
                scalars.at(GetParam().loss).item(), c.tolerance("scalars"));
    EXPECT_NEAR(sums.value("actor/pg_clipfrac"),
                scalars.at("clip_fraction").item(), c.tolerance("scalars"));
    if (*GetParam().grads != '\0')
      c.expect_plane(*engine, Plane::grad, GetParam().grads,
                     c.tolerance("actor_grads"));
    if (GetParam().mean == LossMean::sequence)
      c.expect_plane(*engine, Plane::weight, "actor_after.safetensors",
                     c.tolerance("actor_after"));
  }
}
INSTANTIATE_TEST_SUITE_P(
  LossMeans, GoldenGrpo,
  ::testing::Values(GrpoMean{"sequence", LossMean::sequence, "loss_grpo",
                             "actor_grads.safetensors"},
                    GrpoMean{"token", LossMean::token, "loss_token_mean",
                             "actor_grads_token_mean.safetensors"},
                    GrpoMean{"horizon", LossMean::sequence_horizon,
                             "loss_dr_grpo", ""}),
  [](const auto& entry) { return std::string(entry.param.name); });

} // namespace
} // namespace troupe::models
