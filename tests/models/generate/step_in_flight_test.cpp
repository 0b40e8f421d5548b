// A host that launches steps before it has read the tokens of those before has
// the results of one that reads first: our CPU kernels, whose steps are never
// in flight (I2).
#include "models/generate/generator.hpp"
#include "models/generate/step_in_flight.hpp"
#include "models/gpu/aten_backend.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/kernels/kv_cache.hpp"

#include "tests/support/models/deferred_backend.hpp"
#include "tests/support/models/generation_support.hpp"
#include "tests/support/models/replaying_recorder.hpp"
#include "tests/support/models/turns_support.hpp"
#include <gmock/gmock.h>

#include <map>
#include <numeric>
#include <string>

namespace troupe::models {
namespace {

using internal::Sequence;
using internal::StepInFlight;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using troupe::testing::at_step;
using troupe::testing::DeferredBackend;
using troupe::testing::early_ends;
using troupe::testing::Ids;
using troupe::testing::Leader;
using troupe::testing::mixed_prompts;
using troupe::testing::prompt_rows;
using troupe::testing::ragged_options;
using troupe::testing::ragged_prompts;
using troupe::testing::ReplayingRecorder;
using troupe::testing::Response;
using troupe::testing::responses_of;
using troupe::testing::SmallModel;

DeferredBackend& late_device() {
  return DeferredBackend::instance();
}

/// Returns the draw of rows 2 and 0.
DrawnTokens two_drawn_tokens() {
  const std::vector<DrawnToken> drawn{{50, -0.5F}, {51, -1}, {52, -2}};
  return {{2, 0},
          std::make_unique<ArrivedNumbers>(std::as_bytes(std::span(drawn))),
          TensorPeers{}};
}

Sequence sequence_in_flight(std::int64_t tokens) {
  Sequence s;
  s.ids.resize(static_cast<std::size_t>(tokens), 1);
  s.fed = tokens;
  s.limits = {8, 8};
  return s;
}

TEST(StepInFlight, NamesTokensUntilTheyAreThere) {
  Sequence first = sequence_in_flight(2);
  Sequence second = sequence_in_flight(3);
  StepInFlight step({&first, &second}, two_drawn_tokens());
  step.name_tokens();
  EXPECT_THAT(first.ids, ElementsAre(1, 1, drawn_in(2)));
  EXPECT_THAT(second.ids, ElementsAre(1, 1, 1, drawn_in(0)));
  const auto [due, tokens] = step.finish();
  EXPECT_THAT(due, ElementsAre(&first, &second));
  EXPECT_EQ(tokens.at(0).id, 52);
  EXPECT_EQ(tokens.at(1).id, 50);
  EXPECT_EQ(first.ids.size(), 2U);
  EXPECT_THAT(step.finish().due, IsEmpty()) << "none is in flight";
}

TEST(StepInFlight, DropsTheTokenOfASequenceThatHasEnded) {
  Sequence ended = sequence_in_flight(3);
  Sequence runs = sequence_in_flight(3);
  StepInFlight step({&ended, &runs}, two_drawn_tokens());
  ended.stopped = true;
  EXPECT_EQ(step.drop_ended(), 1U);
  EXPECT_EQ(ended.fed, 2) << "as if its end token had not been fed";
  EXPECT_EQ(runs.fed, 3);
  step.name_tokens();
  EXPECT_EQ(ended.ids.size(), 3U);
  const auto [due, tokens] = step.finish();
  EXPECT_THAT(due, ElementsAre(&runs));
  EXPECT_EQ(tokens.at(0).id, 50);
}

/// Returns options of which most responses end early.
GenerateOptions ending_options() {
  return ragged_options(/*num_stop_ids=*/9);
}

struct AheadRun {
  std::vector<Response> responses; ///< of two batches
  std::uint64_t fed_tokens = 0;
};

AheadRun run_two_batches(Backend& backend, const GenerateOptions& options,
                         std::size_t samples = 3) {
  const SmallModel model;
  Generator generator(model.shape, model.weights, {}, backend);
  const auto prompts = ragged_prompts(samples);
  const std::vector<net::Rows> batches{prompt_rows(prompts),
                                       prompt_rows(prompts, 100)};
  AheadRun all;
  std::map<std::size_t, net::Rows> rows;
  generator.run_batches(batches, options, at_step(5),
                        {.on_batch = [&](std::size_t i, net::Rows got) {
                          rows[i] = std::move(got);
                        }});
  for (const auto& [i, got] : rows)
    std::ranges::copy(responses_of(got), std::back_inserter(all.responses));
  all.fed_tokens = generator.fed_tokens();
  return all;
}

/// Expects equal counts of tokens too, if prompts have one sample: of several,
/// those that leave the cache a step later share more of their prompts.
void expect_equal_runs(const AheadRun& got, const AheadRun& want) {
  EXPECT_EQ(got.responses, want.responses);
  EXPECT_EQ(got.fed_tokens, want.fed_tokens) << "tokens too many do not count";
}

TEST(StepsInFlight, HaveTheResponsesOfAHostThatReadsFirst_I2) {
  const auto want = run_two_batches(host_backend(), ending_options());
  const auto of_one = run_two_batches(host_backend(), ending_options(), 1);
  EXPECT_GT(early_ends(want.responses), 10U);
  EXPECT_LT(early_ends(want.responses), want.responses.size());
  for (const std::int64_t sequences : {1, 2, 7, 64})
    for (const std::int64_t batch_tokens : {1, 5, 2048}) {
      auto options = ending_options();
      options.max_sequences = sequences;
      options.max_batch_tokens = batch_tokens;
      SCOPED_TRACE(std::to_string(sequences) + " sequences, "
                   + std::to_string(batch_tokens) + " tokens of a pass");
      EXPECT_EQ(run_two_batches(late_device(), options).responses,
                want.responses);
      expect_equal_runs(run_two_batches(late_device(), options, 1), of_one);
    }
}

TEST(StepsInFlight, EndAtLimitsWithoutATokenTooMany_I2) {
  for (const std::int64_t new_tokens : {0, 1, 2, 3, 60}) { // 40 + 24 positions
    auto options = ending_options();
    options.stop_ids.clear();
    options.max_new_tokens = new_tokens;
    SCOPED_TRACE(new_tokens);
    const auto want = run_two_batches(host_backend(), options, 1);
    expect_equal_runs(run_two_batches(late_device(), options, 1), want);
  }
}

/// Returns the passes of one response of so many tokens.
int passes_of(std::int64_t new_tokens, std::vector<std::int32_t> stop_ids) {
  const SmallModel model;
  Generator generator(model.shape, model.weights, {}, late_device());
  GenerateOptions options;
  options.max_new_tokens = new_tokens;
  options.stop_ids = std::move(stop_ids);
  const int before = late_device().drawn();
  generator.run(prompt_rows(std::vector<Ids>{{4, 5}}), options, at_step(5));
  return late_device().drawn() - before;
}

TEST(StepsInFlight, AStopCostsOnePassAndALimitNone) {
  EXPECT_EQ(passes_of(9, {}), 9);
  std::vector<std::int32_t> all(131);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(passes_of(9, all), 2);
  EXPECT_EQ(passes_of(1, all), 1) << "it ends anyway";
}

/// Returns how often the device ran out of work in a generation.
int idle_times(const GenerateOptions& options) {
  const int before = late_device().emptied();
  run_two_batches(late_device(), options);
  return late_device().emptied() - before;
}

TEST(StepsInFlight, KeepTheDeviceBusyUntilAllHaveEnded) {
  auto options = ending_options();
  options.stop_ids.clear();
  const auto times_of = [&](std::int64_t new_tokens) {
    options.max_new_tokens = new_tokens;
    return idle_times(options);
  };
  EXPECT_EQ(times_of(22), times_of(12));
  options.repetition_penalty = 1.1; // the host draws
  EXPECT_EQ(times_of(22), times_of(12) + 2 * 10) << "each batch waits";
}

TEST(StepsInFlight, AreDoneWhenACallReturns) {
  auto options = ending_options();
  options.max_sequences = 2;
  for (std::int64_t new_tokens = 1; new_tokens < 12; ++new_tokens) {
    options.max_new_tokens = new_tokens;
    run_two_batches(late_device(), options, 1);
    const int before = late_device().emptied();
    late_device().wait();
    EXPECT_EQ(late_device().emptied(), before) << "nothing was left to run";
  }
}

TEST(StepsInFlight, AreOfTheWeightsOfTheirCall) {
  const auto runs = [](Backend& backend) {
    const SmallModel model;
    Generator generator(model.shape, model.weights, {}, backend);
    std::vector<std::vector<Response>> all;
    for (int run = 0; run < 3; ++run) {
      all.push_back(responses_of(generator.run(prompt_rows(ragged_prompts(2)),
                                               ending_options(), at_step(5))));
      for (float& x : model.parameters->plane(Plane::weight))
        x *= -0.9F;
      generator.weights_changed();
    }
    return all;
  };
  EXPECT_EQ(runs(late_device()), runs(host_backend()));
}

/// Returns a device with pages of 16 tokens, with captured passes or without.
AtenOptions pages_of_16(bool captured) {
  return {.new_recorder = captured ? &ReplayingRecorder::make : nullptr,
          .page_tokens = 16,
          .own_kernels = true};
}

TEST(StepsInFlight, HaveTheSameResponsesIfPagesRunOut_I2) {
  auto options = ending_options();
  options.max_new_tokens = 60;
  options.stop_ids = {5};
  const SmallModel model;
  for (const std::size_t samples : {1U, 3U}) {
    const auto want = run_two_batches(host_backend(), options, samples);
    for (const bool captured : {false, true})
      for (const std::uint64_t pages : {4, 5, 9, 30}) {
        AtenBackend backend(at::kCPU, pages_of_16(captured));
        auto crowded = options;
        crowded.kv_cache_bytes
          = KvCache(model.shape).slot_bytes(16) * (pages + 1);
        SCOPED_TRACE(std::to_string(samples) + " samples, "
                     + std::to_string(pages) + " pages");
        const auto got = run_two_batches(backend, crowded, samples);
        expect_near_responses(got.responses, want.responses);
        EXPECT_GE(got.fed_tokens, want.fed_tokens);
      }
  }
}

TEST(StepsInFlight, OfConversationsFeedEachTokenOnce_I2) {
  const SmallModel model;
  const auto prompts = mixed_prompts();
  const auto talk = [&](Backend& backend, std::int64_t sequences) {
    Generator generator(model.shape, model.weights, {}, backend);
    Leader leader(prompts, 4);
    leader.begin();
    auto options = troupe::testing::talking_options();
    for (std::int32_t id = 0; id < 30; ++id) // most turns end early
      options.stop_ids.push_back(id);
    options.max_sequences = sequences;
    generator.converse(prompt_rows(prompts), options, at_step(5),
                       &leader.queue());
    return std::pair(leader.talks(), generator.fed_tokens());
  };
  EXPECT_EQ(talk(late_device(), 64), talk(host_backend(), 64));
  EXPECT_EQ(talk(late_device(), 2).first, talk(host_backend(), 2).first);
}

} // namespace
} // namespace troupe::models
