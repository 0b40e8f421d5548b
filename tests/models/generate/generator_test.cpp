// Generation: greedy continuations of Hugging Face (golden models/), sampling
// that does not depend on the batch (I1 b, I2), limits and errors.
#include "config/base/error.hpp"
#include "models/engine/engine.hpp"
#include "models/generate/generator.hpp"
#include "models/kernels/kv_cache.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/generation_support.hpp"
#include "tests/support/models/golden.hpp"
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <random>

namespace troupe::models {
namespace {

using testing::actor_of;
using testing::at_step;
using testing::prompt_rows;
using testing::responses_of;
using troupe::testing::Ids;
using troupe::testing::Response;
using troupe::testing::SmallModel;

// -- golden
// ---------------------------------------------------------------------

class GoldenGeneration : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenGeneration, ContinuesGreedilyLikeHuggingFace) {
  TROUPE_NEEDS_GOLDEN();
  const auto folder = testing::golden_folder() / "models" / GetParam();
  const auto golden = testing::read_golden(folder / "generation.safetensors");
  const auto tokens = golden.at("prompt_tokens").ints();
  const auto starts = golden.at("prompt_cu_seqlens").ints();
  std::vector<Ids> prompts;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i)
    prompts.emplace_back(tokens.begin() + starts[i],
                         tokens.begin() + starts[i + 1]);
  Engine engine(actor_of(folder));
  engine.load_weights();
  RunContext context;
  GenerateOptions options;
  options.greedy = true;
  options.ignore_eos = true;
  options.max_new_tokens = golden.at("new_tokens").shape[1];
  const auto responses
    = responses_of(engine.generate(prompt_rows(prompts), options, context));
  const auto want = golden.at("new_tokens").ints();
  const auto& logprobs = golden.at("new_logprobs").values;
  const auto count = static_cast<std::size_t>(options.max_new_tokens);
  ASSERT_EQ(responses.size(), prompts.size());
  for (std::size_t i = 0; i < responses.size(); ++i) {
    const auto first = want.begin() + static_cast<std::ptrdiff_t>(i * count);
    EXPECT_EQ(responses[i].ids,
              Ids(first, first + static_cast<std::ptrdiff_t>(count)));
    EXPECT_TRUE(responses[i].truncated);
    for (std::size_t t = 0; t < count; ++t)
      EXPECT_NEAR(responses[i].logprobs[t], logprobs[i * count + t], 1e-4);
  }

  options.ignore_eos = false;
  options.stop_ids = golden.at("eos_token").ints();
  const auto ended
    = responses_of(engine.generate(prompt_rows(prompts), options, context));
  for (std::size_t i = 0; i < ended.size(); ++i) {
    EXPECT_EQ(static_cast<double>(ended[i].ids.size()),
              golden.at("new_lengths_with_eos").values[i]);
    EXPECT_EQ(ended[i].truncated, ended[i].ids.back() != options.stop_ids[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenGeneration,
                         ::testing::ValuesIn(testing::golden_models(false)),
                         [](const auto& model) { return model.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenGeneration);

TEST(Generator, LogprobsAreWhatTrainingRecomputes) {
  TROUPE_NEEDS_GOLDEN();
  Engine engine(actor_of(testing::golden_folder() / "models" / "qwen2"));
  engine.load_weights();
  RunContext context;
  GenerateOptions options;
  options.temperature = 0.8;
  options.top_k = 20;
  options.repetition_penalty = 1.2;
  options.max_new_tokens = 20;
  const net::Rows rows = engine.generate(
    prompt_rows({{5, 6, 7}, {9}, {3, 4, 5, 6, 7, 8}}), options, context);
  const net::Rows again
    = engine.infer("logprobs", rows, context, {.temperature = 0.8});
  const auto got = rows.at("logprobs").as<float>();
  const auto want = again.at("logprobs").as<float>();
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t t = 0; t < got.size(); ++t)
    EXPECT_NEAR(got[t], want[t], 1e-4) << "token " << t;
}

// -- a small random model
// -------------------------------------------------------

std::vector<Ids> uneven_prompts() {
  return {{1, 2, 3}, {4},     {5, 6, 7, 8, 9, 10, 11, 12, 13},
          {14, 15},  {16, 1}, {2, 2, 2, 2, 2}};
}

GenerateOptions sampling_options() {
  GenerateOptions options;
  options.max_new_tokens = 12;
  options.stop_ids = {7};
  options.seed = 3;
  return options;
}

TEST(Generator, TheBatchDoesNotChangeASample_I1_I2) {
  const SmallModel model;
  const RunContext context = at_step(5);
  Generator generator(model.shape, model.weights, {},
                      troupe::testing::backend_under_test());
  const auto prompts = uneven_prompts();
  GenerateOptions options = sampling_options();
  const auto base
    = responses_of(generator.run(prompt_rows(prompts), options, context));
  for (const std::int64_t sequences : {1, 2, 64})
    for (const std::int64_t tokens : {1, 4, 2048}) {
      options.max_sequences = sequences;
      options.max_batch_tokens = tokens;
      EXPECT_EQ(
        responses_of(generator.run(prompt_rows(prompts), options, context)),
        base)
        << sequences << " sequences, " << tokens << " tokens";
    }
  options = sampling_options();
  for (std::uint32_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(responses_of(
                generator.run(prompt_rows({prompts[i]}, i), options, context))
                .front(),
              base[i]);
}

TEST(Generator, BatchesThatShareSlotsGiveTheSameBitsInFewerPasses_I2) {
  const SmallModel model;
  Generator generator(model.shape, model.weights, {},
                      troupe::testing::backend_under_test());
  std::vector<Ids> prompts = uneven_prompts();
  std::ranges::copy(uneven_prompts(), std::back_inserter(prompts));
  GenerateOptions options = sampling_options();
  for (std::int32_t id = 0; id < 20; ++id) // responses of all lengths
    options.stop_ids.push_back(id);
  std::atomic<std::uint64_t> progress{0};
  RunContext context = at_step(5);
  context.progress = &progress;
  const auto count = [&](const auto& work) {
    const auto before = progress.load();
    work();
    return progress.load() - before;
  };
  const auto whole
    = responses_of(generator.run(prompt_rows(prompts), options, context));
  for (const std::size_t size : {2U, 3U, 4U, 5U}) {
    std::vector<net::Rows> batches;
    for (std::size_t i = 0; i < prompts.size(); i += size)
      batches.push_back(prompt_rows(
        {prompts.begin() + static_cast<std::ptrdiff_t>(i),
         prompts.begin()
           + static_cast<std::ptrdiff_t>(std::min(i + size, prompts.size()))},
        static_cast<std::uint32_t>(i)));
    batches.emplace_back(); // a chunk without samples here
    std::map<std::size_t, std::vector<Response>> ended;
    const auto joined = count([&] {
      generator.run_batches(
        batches, options, context,
        {.on_batch = [&](std::size_t batch, const net::Rows& rows) {
          EXPECT_TRUE(ended.emplace(batch, responses_of(rows)).second);
        }});
    });
    ASSERT_EQ(ended.size(), batches.size());
    std::vector<Response> all;
    for (const auto& [batch, responses] : ended)
      all.insert(all.end(), responses.begin(), responses.end());
    EXPECT_EQ(all, whole) << "batches of " << size;
    batches.pop_back();
    const auto apart = count([&] {
      for (const auto& batch : batches)
        generator.run(batch, options, context);
    });
    EXPECT_LT(joined, apart) << "batches of " << size;
  }
}

TEST(Generator, StepSampleAndSeedChangeTheNoise_I2) {
  const SmallModel model;
  Generator generator(model.shape, model.weights, {},
                      troupe::testing::backend_under_test());
  const GenerateOptions options = sampling_options();
  GenerateOptions other = options;
  other.seed = 4;
  const RunContext context = at_step(5);
  const RunContext later = at_step(6);
  const std::vector<Ids> prompts{{1, 2, 3}};
  const auto base
    = responses_of(generator.run(prompt_rows(prompts), options, context));
  EXPECT_NE(responses_of(generator.run(prompt_rows(prompts), options, later)),
            base);
  EXPECT_NE(
    responses_of(generator.run(prompt_rows(prompts, 1), options, context)),
    base);
  EXPECT_NE(responses_of(generator.run(prompt_rows(prompts), other, context)),
            base);
}

TEST(Generator, NewWeightsAreUsedOnceTheyAreAnnounced) {
  const SmallModel model;
  Generator generator(model.shape, model.weights, {},
                      troupe::testing::backend_under_test());
  const RunContext context;
  const auto run = [&] {
    return responses_of(generator.run(prompt_rows(uneven_prompts()),
                                      sampling_options(), context));
  };
  const auto before = run();
  for (float& x : model.parameters->plane(Plane::weight))
    x = -x;
  generator.weights_changed();
  EXPECT_NE(run(), before);
  for (float& x : model.parameters->plane(Plane::weight))
    x = -x;
  generator.weights_changed();
  EXPECT_EQ(run(), before);
}

TEST(Generator, AFullCacheMakesPromptsWait) {
  const SmallModel model;
  const RunContext context;
  const auto run = [&](std::uint64_t bytes) {
    Generator generator(model.shape, model.weights, {.kv_cache_bytes = bytes},
                        troupe::testing::backend_under_test());
    return responses_of(generator.run(prompt_rows(uneven_prompts()),
                                      sampling_options(), context));
  };
  KvCache cache(model.shape);
  const auto one_slot = cache.slot_bytes(9 + 12);
  EXPECT_EQ(run(one_slot), run(one_slot * 100));
  EXPECT_THROW(run(one_slot - 1), FailureError);
}

TEST(Generator, StopsAtLengthLimitsWithTheFinishReason) {
  const SmallModel model;
  const RunContext context;
  Generator generator(model.shape, model.weights, {},
                      troupe::testing::backend_under_test());
  GenerateOptions options = sampling_options();
  options.max_new_tokens = 1000;
  options.min_new_tokens = 1000;
  const auto responses = responses_of(
    generator.run(prompt_rows({Ids(60, 1), Ids(64, 2)}), options, context));
  EXPECT_EQ(responses[0].ids.size(), 4U); // 64 positions
  EXPECT_TRUE(responses[1].ids.empty());
  EXPECT_TRUE(responses[0].truncated);
  EXPECT_TRUE(responses[1].truncated);
}

TEST(Generator, ReportsEverySampleOnceWhenItFinishes) {
  const SmallModel model;
  const RunContext context;
  Generator generator(model.shape, model.weights, {},
                      troupe::testing::backend_under_test());
  std::map<std::uint32_t, Ids> seen;
  net::Rows rows;
  const std::vector batches{prompt_rows(uneven_prompts())};
  generator.run_batches(
    batches, sampling_options(), context,
    {.on_sample =
       [&](const GeneratedSample& sample) {
         EXPECT_EQ(rows.num_samples(), 0U);
         const auto [at, is_new]
           = seen.emplace(sample.sample.value, Ids(sample.sequence_ids.begin(),
                                                   sample.sequence_ids.end()));
         EXPECT_TRUE(is_new);
       },
     .on_batch = [&](std::size_t, net::Rows all) { rows = std::move(all); }});
  const auto offsets = rows.at("sequence_ids").offsets();
  const auto ids = rows.at("sequence_ids").as<std::int32_t>();
  ASSERT_EQ(seen.size(), rows.num_samples());
  for (std::uint32_t i = 0; i < seen.size(); ++i) {
    const auto part = ids.subspan(offsets[i], offsets[i + 1] - offsets[i]);
    EXPECT_EQ(seen.at(i), Ids(part.begin(), part.end()));
  }
}

TEST(Generator, TheStopFlagAbortsAndProgressIsReported) {
  const SmallModel model;
  Generator generator(model.shape, model.weights, {},
                      troupe::testing::backend_under_test());
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> progress{0};
  RunContext context;
  context.stop = &stop;
  context.progress = &progress;
  generator.run(prompt_rows({{1, 2}}), sampling_options(), context);
  EXPECT_GE(progress.load(), 2U);
  stop = true;
  try {
    generator.run(prompt_rows({{1, 2}}), sampling_options(), context);
    FAIL() << "a stopped run must throw";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::aborted);
  }
}

TEST(Generator, BadPromptsAreNamed) {
  const SmallModel model;
  const RunContext context;
  Generator generator(model.shape, model.weights, {},
                      troupe::testing::backend_under_test());
  for (const Ids& prompt : {Ids{}, Ids{131}, Ids{-1}, Ids(65, 1)}) {
    try {
      generator.run(prompt_rows({{1}, prompt}), sampling_options(), context);
      FAIL() << "a bad prompt must throw";
    } catch (const FailureError& error) {
      EXPECT_EQ(error.failure().code, Errc::bad_input);
      EXPECT_NE(error.failure().what.find("sample 1"), std::string::npos);
    }
  }
}

} // namespace
} // namespace troupe::models
