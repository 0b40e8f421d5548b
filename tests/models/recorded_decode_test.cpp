// Passes of decoding that a device recorded once and runs again give the bits
// of kernels that are asked for one by one (I1, I2).
#include "models/aten_compute.hpp"
#include "models/engine.hpp"
#include "models/generator.hpp"
#include "models/gpu_recorder.hpp"
#include "models/host_compute.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include "../support/models/again_recorder.hpp"
#include "../support/models/engine_support.hpp"
#include "../support/models/generation_support.hpp"
#include "../support/models/golden.hpp"
#include "../support/models/io_support.hpp"
#include "../support/models/late_compute.hpp"
#include "../support/models/parallel_support.hpp"
#include "../support/models/turns_support.hpp"

#include <algorithm>
#include <vector>

namespace troupe::models {
namespace {

using troupe::testing::AgainRecorder;
using troupe::testing::Answer;
using troupe::testing::answers_of;
using troupe::testing::at_step;
using troupe::testing::Ids;
using troupe::testing::LateCompute;
using troupe::testing::Leader;
using troupe::testing::prompt_rows;
using troupe::testing::SmallModel;

/// Recordings that a device ran while `work` did.
template <class Work>
int replays_of(const Work& work) {
  const int before = LateCompute::instance().replayed();
  work();
  return LateCompute::instance().replayed() - before;
}

std::vector<Ids> growing_prompts() {
  std::vector<Ids> prompts{{4}, {1, 2}, {6}};
  for (std::int32_t length : {70, 3, 9, 1, 30, 2, 2})
    for (prompts.emplace_back(); length > 0; --length)
      prompts.back().push_back(10 + length % 50);
  return prompts;
}

// Keys of a pass go over 16, 32, 64 and 128 and back.
GenerateOptions growing_options() {
  GenerateOptions options;
  options.max_new_tokens = 90;
  options.max_sequences = 3;
  options.seed = 3;
  for (std::int32_t id = 0; id < 3; ++id) // answers of all lengths
    options.stop_ids.push_back(id);
  return options;
}

SmallModel long_model() {
  SmallModel model;
  model.shape.max_positions = 256;
  return model;
}

std::vector<Answer> answers_on(Compute& compute, const SmallModel& model,
                               const GenerateOptions& options) {
  Generator generator(model.shape, model.weights, {}, compute);
  return answers_of(
    generator.run(prompt_rows(growing_prompts()), options, at_step(5)));
}

class RecordedDecode : public ::testing::TestWithParam<const char*> {};

TEST_P(RecordedDecode, HasTheBitsOfKernelsOneByOne_I1) {
  TROUPE_NEEDS_GOLDEN();
  const auto answers = [&](Compute& compute) {
    Engine::Spec spec = troupe::testing::actor_of(
      troupe::testing::golden_folder() / "models" / GetParam());
    spec.compute = &compute;
    Engine engine(spec);
    engine.load_weights();
    GenerateOptions options;
    options.max_new_tokens = 24;
    options.max_sequences = 3;
    options.seed = 7;
    RunContext context;
    return answers_of(engine.generate(
      prompt_rows({{5, 6, 7}, {9}, {3, 4, 5, 6, 7, 8}, {8, 8}, {4, 5, 6, 7}}),
      options, context));
  };
  std::vector<Answer> recorded;
  const int replays
    = replays_of([&] { recorded = answers(LateCompute::instance()); });
  EXPECT_EQ(recorded, answers(host_compute()));
  if (std::string(GetParam()) == "mixtral")
    EXPECT_EQ(replays, 0) << "the host deals rows to experts";
  else
    EXPECT_GT(replays, 24);
}

INSTANTIATE_TEST_SUITE_P(Models, RecordedDecode,
                         ::testing::Values("gemma", "gemma2", "gpt2",
                                           "llama_gqa", "llama_rope_llama3",
                                           "mistral_window", "mixtral", "qwen2",
                                           "qwen3"));

TEST(Recorded, SlotsThatAreHandedOnAndKeysThatGrowKeepTheBits_I1_I2) {
  const SmallModel model = long_model();
  std::vector<Answer> recorded;
  const int before = LateCompute::instance().recorded();
  const int replays = replays_of([&] {
    recorded = answers_on(LateCompute::instance(), model, growing_options());
  });
  EXPECT_EQ(recorded, answers_on(host_compute(), model, growing_options()));
  EXPECT_GT(replays, 50);
  EXPECT_GT(LateCompute::instance().recorded() - before, 5);
}

TEST(Recorded, ABudgetBelowTheSlotsKeepsTheBits_I2) {
  const SmallModel model = long_model();
  GenerateOptions options = growing_options();
  options.max_sequences = 7;
  options.max_batch_tokens = 4; // some slots have no row in a pass
  std::vector<Answer> recorded;
  EXPECT_GT(replays_of([&] {
              recorded = answers_on(LateCompute::instance(), model, options);
            }),
            50);
  EXPECT_EQ(recorded, answers_on(host_compute(), model, options));
}

// The third prompt's pass needs more room than those before, whose shapes come
// again behind it.
TEST(Recorded, LargerBuffersEndRecordings) {
  const SmallModel model = long_model();
  GenerateOptions options = growing_options();
  options.max_new_tokens = 8;
  options.max_sequences = 2;
  options.stop_ids = {};
  const auto answers = [&](Compute& compute) {
    Generator generator(model.shape, model.weights, {}, compute);
    return answers_of(generator.run(
      prompt_rows({{4}, {1, 2}, Ids(70, 5), {3}, {5}, {6, 6}, {9}, {8}}),
      options, at_step(5)));
  };
  EXPECT_EQ(answers(LateCompute::instance()), answers(host_compute()));
}

TEST(Recorded, NewWeightsAndCachesAreRecordedAnew) {
  const SmallModel model = long_model();
  const auto runs = [&](Compute& compute) {
    Generator generator(model.shape, model.weights, {}, compute);
    std::vector<std::vector<Answer>> all;
    for (const std::int64_t slots : {2, 4, 3}) {
      GenerateOptions options = growing_options();
      options.max_sequences = slots;
      all.push_back(answers_of(
        generator.run(prompt_rows(growing_prompts()), options, at_step(5))));
      for (float& x : model.parameters->plane(Plane::weight))
        x = -x;
      generator.weights_changed();
    }
    for (float& x : model.parameters->plane(Plane::weight))
      x = -x; // as it was
    return all;
  };
  EXPECT_EQ(runs(LateCompute::instance()), runs(host_compute()));
}

TEST(Recorded, KeysOfConversationsSurviveThePassesOfOthers_I2) {
  const SmallModel model = long_model();
  const auto prompts = troupe::testing::mixed_prompts();
  const auto talks = [&](Compute& compute) {
    Generator generator(model.shape, model.weights, {}, compute);
    Leader leader(prompts, 3);
    leader.begin();
    generator.converse(prompt_rows(prompts), troupe::testing::talking_options(),
                       at_step(5), &leader.queue());
    return leader.talks();
  };
  std::map<std::uint32_t, troupe::testing::Talk> recorded;
  EXPECT_GT(replays_of([&] { recorded = talks(LateCompute::instance()); }), 5);
  EXPECT_EQ(recorded, talks(host_compute()));
}

// Stages record; peers, whose sums are the host's in part, do not.
TEST(Recorded, StagesRecordTheirLayersAndTensorPeersDoNot) {
  const troupe::testing::TempFolder folder;
  ModelShape shape = troupe::testing::small_shape();
  shape.num_layers = 4;
  troupe::testing::write_random_model(folder / "model", shape, 1);
  const auto answers = [&](Compute& compute, const char* strategy) {
    Engine::Spec spec = troupe::testing::trained_actor(folder / "model");
    spec.compute = &compute;
    troupe::testing::ParallelReplica replica(spec, strategy);
    GenerateOptions options;
    options.max_new_tokens = 12;
    options.seed = 5;
    options.max_sequences = 4;
    return answers_of(replica.generate(
      prompt_rows({{5, 6, 7}, {9}, {3, 4, 5}, {8, 8}, {4}}), options));
  };
  for (const char* strategy : {"p2", "t2"}) {
    std::vector<Answer> late;
    const int replays
      = replays_of([&] { late = answers(LateCompute::instance(), strategy); });
    EXPECT_EQ(late, answers(host_compute(), strategy)) << strategy;
    EXPECT_EQ(replays > 0, *strategy == 'p') << strategy << " " << replays;
  }
}

class RefusingRecorder final : public Recorder {
public:
  static std::unique_ptr<Recorder> make(at::Device /*device*/) {
    return std::make_unique<RefusingRecorder>();
  }
  std::unique_ptr<Recording>
  record(const std::function<void()>& /*kernels*/) override {
    return nullptr;
  }
};

GenerateOptions few_tokens() {
  GenerateOptions options = growing_options();
  options.max_new_tokens = 20;
  return options;
}

TEST(Recorded, ARefusalOnlyMeansThatKernelsRunOneByOne) {
  const SmallModel model = long_model();
  AtenCompute again(at::kCPU, nullptr, nullptr, &AgainRecorder::make);
  AtenCompute refuses(at::kCPU, nullptr, nullptr, &RefusingRecorder::make);
  EXPECT_EQ(answers_on(again, model, few_tokens()),
            answers_on(refuses, model, few_tokens()));
}

// The recorder itself needs no driver.
TEST(Recorded, GpusRecordInABuildThatHasTheirKernels) {
  const bool with_gpus = c10::Dispatcher::singleton()
                           .findSchemaOrThrow("aten::mm", "")
                           .hasKernelForDispatchKey(c10::DispatchKey::CUDA);
  EXPECT_EQ(gpu_recorder(at::Device(at::kCUDA, 0)) != nullptr, with_gpus);
}

// A row that fills up may see no key that its window leaves, and there are more
// keys than tokens: nothing of it may reach a token.
TEST(Recorded, FilledUpPassesOfAtenGiveWhatItGivesWithout) {
  for (const std::int64_t window : {0, 5}) {
    SmallModel model = long_model();
    for (LayerWeights& layer : model.weights.layers)
      layer.window = window;
    AtenCompute plain(at::kCPU, nullptr);
    AtenCompute filled(at::kCPU, nullptr, nullptr, &AgainRecorder::make);
    GenerateOptions options = few_tokens();
    options.max_sequences = 5;
    options.max_batch_tokens = 3; // slots wait, and fill passes up
    const auto want = answers_on(plain, model, options);
    const auto got = answers_on(filled, model, options);
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i].ids, want[i].ids);
      for (std::size_t t = 0; t < want[i].logprobs.size(); ++t)
        EXPECT_NEAR(got[i].logprobs[t], want[i].logprobs[t], 1e-4);
    }
  }
}

} // namespace
} // namespace troupe::models
