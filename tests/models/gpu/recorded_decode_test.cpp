// Decode passes that a device captured once and replays give the bits of
// kernels that are launched one by one (I1, I2).
#include "config/model/model_shape.hpp"
#include "models/engine/engine.hpp"
#include "models/generate/generator.hpp"
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/gpu_graph_recorder.hpp"
#include "models/kernels/host_backend.hpp"

#include <ATen/core/dispatch/Dispatcher.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/deferred_backend.hpp"
#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/generation_support.hpp"
#include "tests/support/models/golden.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include "tests/support/models/replaying_recorder.hpp"
#include "tests/support/models/turns_support.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::models {
namespace {

using troupe::testing::at_step;
using troupe::testing::DeferredBackend;
using troupe::testing::Ids;
using troupe::testing::Leader;
using troupe::testing::prompt_rows;
using troupe::testing::ReplayingRecorder;
using troupe::testing::Response;
using troupe::testing::responses_of;
using troupe::testing::SmallModel;

/// Returns the number of graphs that a device ran during `work`.
template <class Work>
int replays_of(const Work& work) {
  const int before = DeferredBackend::instance().replayed();
  work();
  return DeferredBackend::instance().replayed() - before;
}

std::vector<Ids> growing_prompts() {
  std::vector<Ids> prompts{{4}, {1, 2}, {6}};
  for (std::int32_t length : {70, 3, 9, 1, 30, 2, 2})
    for (prompts.emplace_back(); length > 0; --length)
      prompts.back().push_back(10 + length % 50);
  return prompts;
}

// The keys of a pass exceed 16, 32, 64 and 128 and fall again.
GenerateOptions growing_options() {
  GenerateOptions options;
  options.max_new_tokens = 90;
  options.max_sequences = 3;
  options.seed = 3;
  for (std::int32_t id = 0; id < 3; ++id) // responses of all lengths
    options.stop_ids.push_back(id);
  return options;
}

SmallModel long_model() {
  SmallModel model;
  model.shape.max_positions = 256;
  return model;
}

std::vector<Response> responses_on(Backend& backend, const SmallModel& model,
                                   const GenerateOptions& options) {
  Generator generator(model.shape, model.weights, {}, backend);
  return responses_of(
    generator.run(prompt_rows(growing_prompts()), options, at_step(5)));
}

/// Place of the draw: the host if options have penalties or forbid an early
/// end, which it alone knows.
enum class DrawnOn : std::uint8_t { device, host };

/// Returns options of short responses; a golden model's vocabulary is small, so
/// that it draws the end early.
GenerateOptions short_responses(DrawnOn drawn) {
  GenerateOptions options;
  options.min_new_tokens = drawn == DrawnOn::host ? 16 : 0;
  options.repetition_penalty = drawn == DrawnOn::host ? 1.1 : 1.0;
  options.ignore_eos = drawn == DrawnOn::device;
  options.max_new_tokens = 24;
  options.max_sequences = 3;
  options.seed = 7;
  return options;
}

/// Returns what a golden model samples.
std::vector<Response> golden_responses(const std::string& model,
                                       Backend& backend,
                                       const GenerateOptions& options,
                                       DType dtype = DType::f32) {
  Engine::Spec spec = troupe::testing::actor_of(troupe::testing::golden_folder()
                                                / "models" / model);
  spec.backend = &backend;
  spec.dtype = dtype;
  Engine engine(spec);
  engine.load_weights();
  std::vector<Ids> prompts{{5, 6, 7}, {9}, {3, 4, 5, 6, 7, 8}, {8, 8}};
  if (options.max_sequences < std::ssize(prompts))
    prompts.push_back({4, 5, 6, 7}); // slots are used again
  RunContext context;
  return responses_of(engine.generate(prompt_rows(prompts), options, context));
}

class RecordedDecode : public ::testing::TestWithParam<std::string> {};

TEST_P(RecordedDecode, HasTheBitsOfSingleKernelLaunches_I1) {
  TROUPE_NEEDS_GOLDEN();
  auto& late = DeferredBackend::instance();
  for (const DrawnOn drawn : {DrawnOn::device, DrawnOn::host}) {
    const GenerateOptions options = short_responses(drawn);
    std::vector<Response> recorded;
    const int before = late.drawn();
    const int replays = replays_of(
      [&] { recorded = golden_responses(GetParam(), late, options); });
    EXPECT_EQ(recorded, golden_responses(GetParam(), host_backend(), options));
    EXPECT_EQ(late.drawn() > before, drawn == DrawnOn::device);
    EXPECT_GT(replays, 24);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RecordedDecode,
                         ::testing::ValuesIn(testing::golden_models(false)),
                         [](const auto& model) { return model.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RecordedDecode);

class UnrecordedDecode : public ::testing::TestWithParam<std::string> {
protected:
  /// Expects the same of the backend under test with and without capture.
  static void expect_same(const GenerateOptions& options, DType dtype) {
    const auto recorded = golden_responses(
      GetParam(), troupe::testing::backend_under_test(), options, dtype);
    const auto single = golden_responses(
      GetParam(), troupe::testing::unrecorded_backend_under_test(), options,
      dtype);
    ASSERT_EQ(recorded.size(), single.size());
    for (std::size_t i = 0; i < single.size(); ++i) {
      EXPECT_EQ(recorded[i].ids, single[i].ids) << i;
      EXPECT_THAT(
        recorded[i].logprobs,
        ::testing::Pointwise(::testing::FloatNear(1e-4F), single[i].logprobs))
        << i;
    }
  }
};

// On a GPU these are CUDA's graphs; products may then have other bits, as the
// rows of a captured pass are padded.
TEST_P(UnrecordedDecode, HasTheTokensOfRecordedDecoding_I1) {
  TROUPE_NEEDS_GOLDEN();
  for (const DrawnOn drawn : {DrawnOn::device, DrawnOn::host})
    expect_same(short_responses(drawn), DType::f32);
}

// What is stored in bf16 turns other bits of a product into other tokens, so
// all passes have the rows of a captured one: none is padded.
TEST_P(UnrecordedDecode, HasTheTokensOfRecordedDecodingInBf16_I1) {
  TROUPE_NEEDS_GOLDEN();
  GenerateOptions options = short_responses(DrawnOn::device);
  options.max_sequences = 4; // one for each prompt, none of which ends early
  expect_same(options, DType::bf16);
}

INSTANTIATE_TEST_SUITE_P(Models, UnrecordedDecode,
                         ::testing::ValuesIn(testing::golden_models(false)),
                         [](const auto& model) { return model.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(UnrecordedDecode);

TEST(Recorded, ReusedSlotsAndGrowingKeysKeepTheBits_I1_I2) {
  const SmallModel model = long_model();
  std::vector<Response> recorded;
  const int before = DeferredBackend::instance().recorded();
  const int replays = replays_of([&] {
    recorded
      = responses_on(DeferredBackend::instance(), model, growing_options());
  });
  EXPECT_EQ(recorded, responses_on(host_backend(), model, growing_options()));
  EXPECT_GT(replays, 50);
  EXPECT_GT(DeferredBackend::instance().recorded() - before, 5);
}

TEST(Recorded, ABudgetBelowTheSlotsKeepsTheBits_I2) {
  const SmallModel model = long_model();
  GenerateOptions options = growing_options();
  options.max_sequences = 7;
  options.max_batch_tokens = 4; // some slots have no row in a pass
  std::vector<Response> recorded;
  EXPECT_GT(replays_of([&] {
              recorded
                = responses_on(DeferredBackend::instance(), model, options);
            }),
            50);
  EXPECT_EQ(recorded, responses_on(host_backend(), model, options));
}

// The pass of the third prompt needs more space than those before, whose shapes
// recur after it.
TEST(Recorded, LargerBuffersDiscardGraphs) {
  const SmallModel model = long_model();
  GenerateOptions options = growing_options();
  options.max_new_tokens = 8;
  options.max_sequences = 2;
  options.stop_ids = {};
  const auto responses = [&](Backend& backend) {
    Generator generator(model.shape, model.weights, {}, backend);
    return responses_of(generator.run(
      prompt_rows({{4}, {1, 2}, Ids(70, 5), {3}, {5}, {6, 6}, {9}, {8}}),
      options, at_step(5)));
  };
  EXPECT_EQ(responses(DeferredBackend::instance()), responses(host_backend()));
}

TEST(Recorded, NewWeightsAndCachesAreCapturedAgain) {
  const SmallModel model = long_model();
  const auto runs = [&](Backend& backend) {
    Generator generator(model.shape, model.weights, {}, backend);
    std::vector<std::vector<Response>> all;
    for (const std::int64_t slots : {2, 4, 3}) {
      GenerateOptions options = growing_options();
      options.max_sequences = slots;
      all.push_back(responses_of(
        generator.run(prompt_rows(growing_prompts()), options, at_step(5))));
      for (float& x : model.parameters->plane(Plane::weight))
        x = -x;
      generator.weights_changed();
    }
    for (float& x : model.parameters->plane(Plane::weight))
      x = -x; // unchanged
    return all;
  };
  EXPECT_EQ(runs(DeferredBackend::instance()), runs(host_backend()));
}

/// Generates from prompts of one token, so that each pass has one per sequence;
/// the device draws.
std::vector<Response> single_rows(Generator& generator,
                                  std::int64_t new_tokens) {
  GenerateOptions options;
  options.max_new_tokens = new_tokens;
  options.seed = 3;
  return responses_of(
    generator.run(prompt_rows({{4}, {9}, {6}}), options, at_step(5)));
}

// Embedding, layers, head and draw are one graph: a pass is a copy of its
// tokens, a launch and a copy of what it drew. New weights are packed in place
// of the old ones.
TEST(Recorded, GraphsOfWholePassesSurviveNewWeightsAndOtherGenerations) {
  const SmallModel model = long_model();
  auto& late = DeferredBackend::instance();
  Generator captured(model.shape, model.weights, {}, late);
  Generator plain(model.shape, model.weights, {}, host_backend());
  const auto launches_of = [&](std::int64_t new_tokens) {
    for (float& x : model.parameters->plane(Plane::weight))
      x = -0.9F * x;
    captured.weights_changed();
    plain.weights_changed();
    const int before = late.launched();
    const auto responses = single_rows(captured, new_tokens);
    const int launches = late.launched() - before;
    EXPECT_EQ(responses, single_rows(plain, new_tokens));
    return launches;
  };
  launches_of(30); // captures its passes; as many slots as those that follow
  const int recorded = late.recorded();
  const int drawn = late.drawn();
  EXPECT_EQ(launches_of(30) - launches_of(20), 3 * 10);
  EXPECT_EQ(late.recorded(), recorded);
  EXPECT_EQ(late.drawn() - drawn, 30 + 20);
}

TEST(Recorded, KeysOfConversationsSurviveThePassesOfOthers_I2) {
  const SmallModel model = long_model();
  const auto prompts = troupe::testing::mixed_prompts();
  const auto talks = [&](Backend& backend) {
    Generator generator(model.shape, model.weights, {}, backend);
    Leader leader(prompts, 3);
    leader.begin();
    generator.converse(prompt_rows(prompts), troupe::testing::talking_options(),
                       at_step(5), &leader.queue());
    return leader.talks();
  };
  std::map<std::uint32_t, troupe::testing::Talk> recorded;
  EXPECT_GT(replays_of([&] { recorded = talks(DeferredBackend::instance()); }),
            5);
  EXPECT_EQ(recorded, talks(host_backend()));
}

// Stages capture; peers do not, since their sums are partly on the host.
TEST(Recorded, StagesCaptureTheirLayersButTensorPeersDoNot) {
  const troupe::testing::TempFolder folder;
  ModelShape shape = troupe::testing::small_shape();
  shape.num_layers = 4;
  troupe::testing::write_random_model(folder / "model", shape, 1);
  const auto responses = [&](Backend& backend, const char* strategy) {
    Engine::Spec spec = troupe::testing::trained_actor(folder / "model");
    spec.backend = &backend;
    troupe::testing::ParallelReplica replica(spec, strategy);
    GenerateOptions options;
    options.max_new_tokens = 12;
    options.seed = 5;
    options.max_sequences = 4;
    return responses_of(replica.generate(
      prompt_rows({{5, 6, 7}, {9}, {3, 4, 5}, {8, 8}, {4}}), options));
  };
  for (const char* strategy : {"p2", "t2"}) {
    std::vector<Response> late;
    const int replays = replays_of(
      [&] { late = responses(DeferredBackend::instance(), strategy); });
    EXPECT_EQ(late, responses(host_backend(), strategy)) << strategy;
    EXPECT_EQ(replays > 0, *strategy == 'p') << strategy << " " << replays;
  }
}

class RefusingRecorder final : public GraphRecorder {
public:
  static std::unique_ptr<GraphRecorder> make(at::Device /*device*/) {
    return std::make_unique<RefusingRecorder>();
  }
  std::unique_ptr<GraphCapture>
  record(const std::function<void()>& /*kernels*/) override {
    return nullptr;
  }
};

GenerateOptions few_tokens() {
  GenerateOptions options = growing_options();
  options.max_new_tokens = 20;
  return options;
}

TEST(Recorded, AFailedCaptureOnlyMeansSingleLaunches) {
  const SmallModel model = long_model();
  AtenBackend again(at::kCPU, {.new_recorder = &ReplayingRecorder::make});
  AtenBackend refuses(at::kCPU, {.new_recorder = &RefusingRecorder::make});
  EXPECT_EQ(responses_on(again, model, few_tokens()),
            responses_on(refuses, model, few_tokens()));
}

// The recorder itself needs no driver.
TEST(Recorded, GpusCaptureInABuildWithTheirKernels) {
  const bool with_gpus = c10::Dispatcher::singleton()
                           .findSchemaOrThrow("aten::mm", "")
                           .hasKernelForDispatchKey(c10::DispatchKey::CUDA);
  EXPECT_EQ(gpu_recorder(at::Device(at::kCUDA, 0)) != nullptr, with_gpus);
}

// A padding row may see no key, since its window excludes all of them, and
// there are more keys than tokens: nothing of it may reach a token.
TEST(Recorded, PaddedPassesOfAtenEqualUnpaddedOnes) {
  for (const std::int64_t window : {0, 5}) {
    SmallModel model = long_model();
    for (LayerWeights& layer : model.weights.layers)
      layer.positions.window = window;
    AtenBackend plain(at::kCPU);
    AtenBackend filled(at::kCPU, {.new_recorder = &ReplayingRecorder::make});
    GenerateOptions options = few_tokens();
    options.max_sequences = 5;
    options.max_batch_tokens = 3; // slots wait, and passes are padded
    const auto want = responses_on(plain, model, options);
    const auto got = responses_on(filled, model, options);
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i].ids, want[i].ids);
      for (std::size_t t = 0; t < want[i].logprobs.size(); ++t)
        EXPECT_NEAR(got[i].logprobs[t], want[i].logprobs[t], 1e-4);
    }
  }
}

} // namespace
} // namespace troupe::models
