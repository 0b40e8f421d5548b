// An engine that only generates keeps its generator: the tokens are those of a
// new one after every change of weights, graphs live on, and no call has more
// memory than with a generator of its own. Elsewhere a call leaves nothing.
#include "config/base/error.hpp"
#include "models/engine/engine.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/parallel/parameters.hpp"

#include "tests/support/models/deferred_backend.hpp"
#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/generation_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include "tests/support/models/turns_support.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <thread>

namespace troupe::models {
namespace {

using troupe::testing::DeferredBackend;
using troupe::testing::Ids;
using troupe::testing::Leader;
using troupe::testing::ParallelReplica;
using troupe::testing::prompt_rows;
using troupe::testing::random_prompts;
using troupe::testing::Response;
using troupe::testing::responses_of;

constexpr std::int32_t kVocabulary = 75;

enum class Generators : std::uint8_t { kept, freed };

GenerateOptions five_tokens() {
  return {.max_new_tokens = 5,
          .seed = 5,
          .max_sequences = 4,
          .stop_ids = {},
          .ignore_eos = true};
}

/// Multiplies the weights on this device.
void scale_weights(Engine& engine, float factor) {
  const auto plane = engine.parameters().change(Plane::weight);
  for (std::size_t i = 0; i < plane.bytes().size() / sizeof(float); ++i)
    plane.floats()[i] *= factor;
  plane.put_back();
  engine.weights_changed();
}

class EngineGeneratorTest : public ::testing::TestWithParam<const char*> {
protected:
  EngineGeneratorTest() {
    troupe::testing::write_random_model(folder_ / "model",
                                        troupe::testing::wide_shape(), 1);
  }
  Engine::Spec spec(Generators generators) const {
    auto spec = troupe::testing::trained_actor(folder_ / "model");
    spec.trainable = false;
    spec.keeps_generator = generators == Generators::kept;
    return spec;
  }

private:
  troupe::testing::TempFolder folder_;
};

class KeptGenerator : public EngineGeneratorTest {};

/// Returns the prompts of a step, some longer than those before.
net::Rows prompts_of(int step) {
  Ids first(static_cast<std::size_t>(3 + 17 * (step % 3)), 5);
  std::vector<Ids> prompts{std::move(first), {9}, {3, 4, 5}, {8, 8}};
  if (step % 2 == 0)
    prompts.insert(prompts.end(), {{4}, {6, 2}});
  return prompt_rows(prompts);
}

TEST_P(KeptGenerator, HasTheTokensOfANewOneAfterNewWeights_I1) {
  ParallelReplica kept(spec(Generators::kept), GetParam());
  float scale = 1;
  for (int step = 0; step < 4; ++step) {
    SCOPED_TRACE(step);
    ParallelReplica fresh(spec(Generators::freed), GetParam());
    fresh.run([&](Engine& engine, RunContext&, std::uint32_t) {
      scale_weights(engine, scale);
    });
    const auto prompts = prompts_of(step);
    troupe::testing::expect_same_responses(
      kept.generate(prompts, five_tokens()),
      fresh.generate(prompts, five_tokens()));
    scale *= -2; // exact
    kept.run([&](Engine& engine, RunContext&, std::uint32_t) {
      scale_weights(engine, -2);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, KeptGenerator,
                         ::testing::Values("d1", "d2", "t2", "p2", "p2t2",
                                           "d2z3"),
                         [](const auto& test) { return test.param; });

class KeptGeneratorMemory : public EngineGeneratorTest {};

TEST_P(KeptGeneratorMemory, IsThatOfItsLargestCall) {
  ParallelReplica kept(spec(Generators::kept), GetParam());
  ParallelReplica freed(spec(Generators::freed), GetParam());
  std::vector<std::uint64_t> before;
  for (std::size_t i = 0; i < freed.size(); ++i)
    before.push_back(freed.memory(i).now_bytes());
  std::vector<std::uint64_t> largest(freed.size());
  for (const int step : {2, 1, 2, 0}) {
    for (auto* replica : {&kept, &freed})
      for (std::size_t i = 0; i < replica->size(); ++i)
        replica->memory(i).begin_peak();
    kept.generate(prompts_of(step), five_tokens());
    freed.generate(prompts_of(step), five_tokens());
    for (std::size_t i = 0; i < freed.size(); ++i) {
      largest[i] = std::max(largest[i], freed.memory(i).peak_bytes());
      EXPECT_EQ(freed.memory(i).now_bytes(), before[i]) << "device " << i;
      EXPECT_GT(kept.memory(i).now_bytes(), before[i]) << "device " << i;
      EXPECT_LE(kept.memory(i).peak_bytes(), largest[i]) << "device " << i;
    }
  }
}

// One call has more slots, the other larger buffers.
TEST_P(KeptGeneratorMemory, IsFreedForACallWithOtherLimits) {
  auto small_passes = five_tokens();
  small_passes.max_batch_tokens = 4;
  auto one_at_once = five_tokens();
  one_at_once.max_sequences = 1;
  ParallelReplica kept(spec(Generators::kept), GetParam());
  ParallelReplica freed(spec(Generators::freed), GetParam());
  for (const auto& options : {small_passes, one_at_once, small_passes}) {
    for (std::size_t i = 0; i < freed.size(); ++i)
      freed.memory(i).begin_peak();
    troupe::testing::expect_same_responses(
      kept.generate(prompts_of(2), options),
      freed.generate(prompts_of(2), options));
    for (std::size_t i = 0; i < kept.size(); ++i)
      EXPECT_LE(kept.memory(i).now_bytes(), freed.memory(i).peak_bytes());
  }
}

// Not z3, which gathers through buffers: these would be beside a kept cache.
INSTANTIATE_TEST_SUITE_P(Strategies, KeptGeneratorMemory,
                         ::testing::Values("d1", "d2", "t2", "p2", "p2t2"),
                         [](const auto& test) { return test.param; });

class OneEngineGenerator : public EngineGeneratorTest {};

TEST_F(OneEngineGenerator, AFailedCallFreesIt) {
  Engine engine(spec(Generators::kept));
  engine.load_weights();
  net::MemoryCount count;
  std::thread([&] {
    count.count_this_thread();
    RunContext context;
    const auto prompts = random_prompts(kVocabulary);
    const auto want
      = responses_of(engine.generate(prompts, five_tokens(), context));
    EXPECT_GT(count.now_bytes(), 0u);
    const std::atomic<bool> stop{true};
    RunContext stopped;
    stopped.stop = &stop;
    EXPECT_THROW(engine.generate(prompts, five_tokens(), stopped),
                 FailureError);
    EXPECT_EQ(count.now_bytes(), 0u);
    EXPECT_EQ(responses_of(engine.generate(prompts, five_tokens(), context)),
              want);
  }).join();
}

TEST_F(OneEngineGenerator, ReadsWeightsThatCameBack) {
  Engine engine(spec(Generators::kept));
  engine.load_weights();
  RunContext context;
  const auto prompts = random_prompts(kVocabulary);
  const auto want
    = responses_of(engine.generate(prompts, five_tokens(), context));
  const auto read = engine.parameters().read(Plane::weight);
  const std::vector<std::byte> saved(read.bytes().begin(), read.bytes().end());
  engine.drop_weights();
  engine.expect_weights();
  const auto plane = engine.parameters().overwrite(Plane::weight);
  std::ranges::copy(saved, plane.bytes().begin());
  plane.put_back();
  engine.weights_changed();
  EXPECT_EQ(responses_of(engine.generate(prompts, five_tokens(), context)),
            want);
}

TEST_F(OneEngineGenerator, LeadsConversationsAfterOthers_I2) {
  Engine kept(spec(Generators::kept));
  Engine freed(spec(Generators::freed));
  const auto prompts = troupe::testing::mixed_prompts();
  for (Engine* engine : {&kept, &freed})
    engine->load_weights();
  for (int turns = 3; turns > 0; --turns) {
    std::vector<std::map<std::uint32_t, troupe::testing::Talk>> talks;
    for (Engine* engine : {&kept, &freed}) {
      Leader leader(prompts, turns);
      leader.begin();
      RunContext context;
      engine->converse(prompt_rows(prompts), troupe::testing::talking_options(),
                       &leader.queue(), context);
      talks.push_back(leader.talks());
    }
    for (const auto& [sample, talk] : talks[1])
      EXPECT_EQ(talks[0].at(sample).ids, talk.ids) << turns;
  }
}

/// An engine on a device that captures passes, and one without graphs.
class CapturedGenerator : public EngineGeneratorTest {
protected:
  /// Returns the graphs that a call captures, after new weights for both.
  int captured_by(const net::Rows& prompts) {
    auto& late = DeferredBackend::instance();
    for (Engine* engine : {&*captured_, &*plain_})
      scale_weights(*engine, -1);
    const int before = late.recorded();
    RunContext context;
    const auto got
      = responses_of(captured_->generate(prompts, five_tokens(), context));
    const int recorded = late.recorded() - before;
    EXPECT_EQ(got,
              responses_of(plain_->generate(prompts, five_tokens(), context)));
    return recorded;
  }
  void begin(Generators generators) {
    auto of = spec(generators);
    of.backend = &DeferredBackend::instance();
    captured_.emplace(of);
    of.backend = &host_backend();
    plain_.emplace(of);
    for (Engine* engine : {&*captured_, &*plain_})
      engine->load_weights();
  }

private:
  std::optional<Engine> captured_, plain_;
};

// All responses are of one length, so passes have all rows or, of the prompts,
// no graph.
TEST_F(CapturedGenerator, GraphsSurviveNewWeightsAndOtherBatches_I1) {
  begin(Generators::kept);
  const auto long_prompts = prompt_rows({Ids(40, 5), {9}, {3, 4}, {8}});
  EXPECT_GT(captured_by(long_prompts), 0);
  EXPECT_EQ(captured_by(long_prompts), 0);
  captured_by(prompt_rows({{4}, {9, 2}})); // two rows a pass
  EXPECT_EQ(captured_by(prompt_rows({{6}, {2}})), 0);
  captured_by(prompt_rows({{6}, Ids(9, 3), {3, 4}, {8}})); // fewer keys
  EXPECT_EQ(captured_by(long_prompts), 0) << "those of the first call";
}

TEST_F(CapturedGenerator, WithoutAKeptGeneratorEachCallCapturesAnew_I1) {
  begin(Generators::freed);
  const auto prompts = prompt_rows({{4}, {9, 2}});
  const int first = captured_by(prompts);
  EXPECT_GT(first, 0);
  EXPECT_EQ(captured_by(prompts), first);
}

} // namespace
} // namespace troupe::models
