// Models with adapters against PEFT: loss, gradients, a step of AdamW and
// greedy continuations of each family (tests/golden/lora.py), and what adapters
// start from.
#include "config/base/error.hpp"
#include "models/engine/engine.hpp"
#include "models/engine/frozen_weights.hpp"
#include "models/engine/optimizer.hpp"
#include "models/generate/generate_options.hpp"
#include "models/gpu/aten_backend.hpp"
#include "models/parallel/run_context.hpp"
#include "models/transformer/weights.hpp"

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/generation_support.hpp"
#include "tests/support/models/golden_loss.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include "tests/support/places.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>

namespace troupe::models {
namespace {

using troupe::testing::wide_shape;

nlohmann::json peft_reference() {
  std::ifstream file(support::source_folder() / "tests/golden/data/lora.json");
  return nlohmann::json::parse(file);
}

std::vector<std::string> peft_models() {
  std::vector<std::string> names;
  const auto reference = peft_reference();
  for (const auto& [name, numbers] : reference.at("cases").items())
    names.push_back(name);
  return names;
}

class LoraModel : public ::testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    folder_
      = support::source_folder() / "tests/golden/data/models" / GetParam();
    reference_ = peft_reference();
    Engine::Spec spec;
    spec.backend = &troupe::testing::backend_under_test();
    spec.folder = folder_;
    spec.role = GetParam();
    spec.trainable = true;
    spec.adapters.lora
      = {.rank = reference_.at("rank"), .alpha = reference_.at("alpha")};
    spec.adapters.lora.targets = lora_targets(read_model_shape(folder_));
    engine_ = std::make_unique<Engine>(spec);
    engine_->load_weights();
    fill_adapters();
  }

  /// Element i of the k-th adapter is 0.1 cos(0.37 i + 0.5 k).
  void fill_adapters() {
    Parameters& parameters = engine_->parameters();
    const auto plane = parameters.overwrite(Plane::weight);
    for (std::size_t k = 0; k < parameters.shapes().size(); ++k)
      for (std::int64_t i = 0; i < parameters.shapes()[k].num_elements(); ++i)
        plane.floats()[parameters.offset(k) + i]
          = static_cast<float>(0.1
                               * std::cos(0.37 * static_cast<double>(i)
                                          + 0.5 * static_cast<double>(k)));
    plane.put_back();
    engine_->weights_changed();
  }

  /// Returns the loss of gradients.py; writes gradients to the grad plane.
  double run(bool recompute) {
    const LocalModel base(frozen_shape(engine_->shape()), {}, {});
    const Weights grads
      = weights_of(base, nullptr, engine_->parameters(), Plane::grad);
    return troupe::testing::GoldenLoss(folder_).run(*engine_, grads,
                                                    {.recompute = recompute});
  }

  /// Compares norms and dot products with cos(0.37 i) of every adapter.
  void expect_measures(Plane plane, const nlohmann::json& want) {
    const Parameters& parameters = engine_->parameters();
    ASSERT_EQ(parameters.shapes().size(), want.size());
    const auto found = parameters.read(plane);
    for (std::size_t k = 0; k < parameters.shapes().size(); ++k) {
      const ParameterShape& shape = parameters.shapes()[k];
      const float* x = found.floats() + parameters.offset(k);
      double squares = 0;
      double dot = 0;
      for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
        squares += double{x[i]} * x[i];
        dot += x[i] * std::cos(0.37 * static_cast<double>(i));
      }
      const double norm = want[k][0];
      EXPECT_NEAR(std::sqrt(squares), norm, 1e-5 + 1e-4 * norm) << shape.name;
      EXPECT_NEAR(dot, want[k][1].get<double>(), 1e-5 + 2e-4 * norm)
        << shape.name;
    }
  }
  const nlohmann::json& wanted() const {
    return reference_.at("cases").at(GetParam());
  }

  std::filesystem::path folder_;
  nlohmann::json reference_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(LoraModel, HasPeftsLossAndGradients) {
  EXPECT_NEAR(run(/*recompute=*/false), wanted().at("loss").get<double>(),
              1e-4);
  expect_measures(Plane::grad, wanted().at("gradients"));
}

TEST_P(LoraModel, RecomputingGivesTheSameBits) {
  const auto gradient = [&](bool recompute) {
    run(recompute);
    const auto plane = engine_->parameters().read(Plane::grad);
    return std::vector<float>(
      plane.floats(), plane.floats() + plane.bytes().size() / sizeof(float));
  };
  EXPECT_EQ(gradient(true), gradient(false));
}

TEST_P(LoraModel, TakesPeftsStepOfAdamW) {
  // its loss falls with the sum of log-probabilities, ours is that sum
  run(/*recompute=*/false);
  const auto& step = reference_.at("step");
  OptimizerSettings settings;
  settings.lr = step.at("lr");
  settings.betas = {step.at("betas")[0], step.at("betas")[1]};
  settings.weight_decay = step.at("weight_decay");
  settings.eps = step.at("eps");
  settings.clip = step.at("clip");
  AdamW adam(engine_->parameters(), settings,
             optimizer_runs(engine_->part(), engine_->parameters()),
             troupe::testing::backend_under_test());
  adam.apply(settings.lr, adam.clip_scale(std::sqrt(adam.squared_norm())), 1);
  troupe::testing::backend_under_test().wait();
  expect_measures(Plane::weight, wanted().at("after"));
}

TEST_P(LoraModel, ContinuesGreedilyLikePeftsMergedModel) {
  const auto& greedy = wanted().at("greedy");
  GenerateOptions options;
  options.max_new_tokens
    = static_cast<std::int64_t>(greedy.at("tokens").size());
  options.temperature = 0;
  options.stop_ids = {-1}; // none
  RunContext context;
  const auto responses = troupe::testing::responses_of(engine_->generate(
    troupe::testing::prompt_rows({greedy.at("prompt")}), options, context));
  ASSERT_EQ(responses.size(), 1U);
  EXPECT_EQ(responses[0].ids,
            greedy.at("tokens").get<std::vector<std::int32_t>>());
}

INSTANTIATE_TEST_SUITE_P(All, LoraModel, ::testing::ValuesIn(peft_models()),
                         [](const auto& model) { return model.param; });

class FrozenWeightsTest : public ::testing::Test {
protected:
  Engine::Spec spec(bool scalar_head = false) {
    const auto folder = folder_ / "model";
    if (!std::filesystem::exists(folder))
      troupe::testing::write_random_model(folder, wide_shape(), 1);
    Engine::Spec spec = troupe::testing::compared_actor(folder);
    spec.scalar_head = scalar_head;
    spec.adapters.lora
      = {.rank = 3, .alpha = 6, .targets = lora_targets(wide_shape())};
    spec.seed = 5;
    return spec;
  }
  /// Saves adapters of which none is zero.
  void save_other_adapters(Engine& engine) {
    engine.load_weights();
    const auto plane = engine.parameters().change(Plane::weight);
    for (float& x :
         std::span(plane.floats(), plane.bytes().size() / sizeof(float)))
      x = 0.5F * x + 0.05F;
    plane.put_back();
    engine.weights_changed();
    engine.save_hf(folder_ / "adapters", DType::f32);
  }
  Engine::Spec with_saved(Engine::Spec spec) const {
    spec.adapters.folder = folder_ / "adapters";
    return spec;
  }
  troupe::testing::TempFolder folder_;
};

TEST_F(FrozenWeightsTest, NewAdaptersAreTheSameInEveryLayoutAndAddNothing) {
  troupe::testing::ParallelReplica alone(spec(), "d1");
  const auto want = alone.plane(Plane::weight);
  EXPECT_NE(want.at("model.layers.0.self_attn.q_proj.lora_A.weight")[0], 0);
  for (const char* strategy : {"d2", "t2", "p2", "d2z1", "t4", "t2s"}) {
    troupe::testing::ParallelReplica split(spec(), strategy);
    EXPECT_EQ(split.plane(Plane::weight), want) << strategy;
  }
  for (const auto& [name, values] : want) {
    if (!name.ends_with("lora_B.weight"))
      continue;
    EXPECT_EQ(std::ranges::count(values, 0.0F), std::ssize(values)) << name;
  }
  Engine::Spec plain = spec();
  plain.adapters = {};
  troupe::testing::ParallelReplica base(plain, "d1");
  const auto rows = troupe::testing::random_sequences(5, 75, 12, 3);
  const auto with = alone.infer("logprobs", rows);
  const auto without = base.infer("logprobs", rows);
  EXPECT_THAT(with.at("logprobs").as<float>(),
              ::testing::ElementsAreArray(without.at("logprobs").as<float>()));
}

TEST_F(FrozenWeightsTest, TheWholeModelsAreThoseOfOneDevice) {
  troupe::testing::ParallelReplica alone(spec(), "d1"), split(spec(), "t2");
  const auto one = alone.engine(0).whole_frozen();
  for (std::size_t device = 0; device < split.size(); ++device) {
    const auto whole = split.engine(device).whole_frozen();
    EXPECT_EQ(whole->parameters.shapes(), one->parameters.shapes());
    EXPECT_THAT(
      whole->parameters.plane(Plane::weight),
      ::testing::ElementsAreArray(one->parameters.plane(Plane::weight)));
  }
}

TEST_F(FrozenWeightsTest, AnotherSeedDrawsOtherAdapters) {
  Engine::Spec other = spec();
  other.seed = 6;
  troupe::testing::ParallelReplica a(spec(), "d1"), b(other, "d1");
  EXPECT_NE(a.plane(Plane::weight), b.plane(Plane::weight));
}

TEST_F(FrozenWeightsTest, ASavedFolderIsLoadedWithTheSameBits) {
  Engine first(spec());
  save_other_adapters(first);
  Engine second(with_saved(spec()));
  second.load_weights();
  EXPECT_EQ(second.checksum(), first.checksum());
}

void expect_close(const std::map<std::string, std::vector<float>>& got,
                  const std::map<std::string, std::vector<float>>& want,
                  double allowed, const std::string& strategy) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, values] : want)
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(got.at(name)[i], values[i], allowed)
        << strategy << " " << name << " entry " << i;
}

// Gradients of one step, then the adapters after three.
TEST_F(FrozenWeightsTest, AdaptersTrainLikeOnOneDevice_I1) {
  Engine first(spec());
  save_other_adapters(first);
  const auto rows = troupe::testing::random_sequences(9, 75, 20, 2);
  const auto all = troupe::testing::first_samples(9);
  TrainSpec one;
  one.fn = "sft_loss";
  one.mini_batches = {all};
  one.micro_batch_tokens = 40;
  TrainSpec two = one;
  two.mini_batches = {troupe::testing::first_samples(5), all};
  troupe::testing::ParallelReplica alone(with_saved(spec()), "d1");
  const MetricSums want = alone.train(one, rows);
  const auto gradient = alone.plane(Plane::grad);
  alone.train(two, rows);
  const auto after = alone.plane(Plane::weight);
  for (const char* strategy :
       {"d2", "t2", "t4", "p2", "p4", "t2s", "d2z1", "d2t2z1", "d2p2t2"}) {
    troupe::testing::ParallelReplica split(with_saved(spec()), strategy);
    const MetricSums got = split.train(one, rows);
    EXPECT_NEAR(got.value("train/loss"), want.value("train/loss"), 1e-5);
    EXPECT_NEAR(got.value("train/grad_norm"), want.value("train/grad_norm"),
                1e-5 * want.value("train/grad_norm"));
    if (split.strategy().zero == Zero::none)
      expect_close(split.plane(Plane::grad), gradient, 1e-5, strategy);
    split.train(two, rows);
    expect_close(split.plane(Plane::weight), after, 5e-5, strategy);
  }
}

TEST_F(FrozenWeightsTest, InBf16HaveNoMastersAndComputeLikeTheModel) {
  AtenBackend backend(at::kCPU, {.bf16_storage = DType::bf16});
  Engine::Spec adapted = spec();
  adapted.backend = &backend;
  adapted.dtype = DType::bf16;
  Engine::Spec plain = adapted;
  plain.adapters = {};
  Engine engine(adapted), base(plain);
  base.load_weights();
  const auto rows = troupe::testing::random_sequences(5, 75, 12, 3);
  RunContext context;
  const net::Rows want = base.infer("logprobs", rows, context, {});
  for (const char* load : {"first", "second"}) {
    engine.load_weights();
    EXPECT_THAT(
      engine.infer("logprobs", rows, context, {}).at("logprobs").as<float>(),
      ::testing::ElementsAreArray(want.at("logprobs").as<float>()))
      << load;
  }
  EXPECT_FALSE(engine.whole_frozen()->parameters.has_no_masters())
    << "for servers and files";
  Engine::Spec critic = spec(/*scalar_head=*/true);
  critic.backend = &backend;
  critic.dtype = DType::bf16;
  EXPECT_NO_THROW(Engine(critic).load_weights()) << "its head is copied";
}

TEST_F(FrozenWeightsTest, InBf16TakeHalfTheMemoryOfFp32) {
  const Engine engine(spec());
  const FrozenWeights masters(engine.shape(), {}, {}, nullptr, DType::f32);
  const FrozenWeights frozen(engine.shape(), {}, {}, nullptr, DType::bf16);
  const double share = static_cast<double>(frozen.parameters.device_bytes())
                       / static_cast<double>(masters.parameters.device_bytes());
  EXPECT_GE(share, 0.5);
  EXPECT_LT(share, 0.55) << "its norms are stored in fp32";
  EXPECT_THROW(frozen.parameters.read(Plane::weight), InvariantError);
}

TEST_F(FrozenWeightsTest, AScalarHeadIsTrainedBesideAdapters) {
  troupe::testing::ParallelReplica critic(spec(/*scalar_head=*/true), "p2t2");
  const auto plane = critic.plane(Plane::weight);
  EXPECT_TRUE(plane.contains("score.weight"));
  EXPECT_FALSE(plane.contains("model.norm.weight"));
}

TEST_F(FrozenWeightsTest, ShardedParametersAreRefused) {
  Engine::Spec sharded = spec();
  sharded.strategy = parse_strategy("d2z3");
  EXPECT_THROW(Engine{sharded}, PlanError);
}

} // namespace
} // namespace troupe::models
