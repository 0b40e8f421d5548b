// Two models in one conversation: each has the tokens that it would say alone,
// in any batch and order (I2), and none waits for the other.
#include "config/base/error.hpp"
#include "models/generate/generator.hpp"
#include "models/generate/turns.hpp"

#include "tests/support/models/generation_support.hpp"
#include "tests/support/models/turns_support.hpp"
#include <gmock/gmock.h>

#include <atomic>
#include <map>
#include <thread>

namespace troupe::models {
namespace {

using troupe::testing::at_step;
using troupe::testing::Ids;
using troupe::testing::Leader;
using troupe::testing::mixed_prompts;
using troupe::testing::prompt_rows;
using troupe::testing::SmallModel;
using troupe::testing::Talk;
using troupe::testing::talking_options;
using Talks = std::map<std::uint32_t, Talk>;

/// Two models, and options that differ in their seeds.
struct Rounds : ::testing::Test {
  Talks talk(const std::vector<Ids>& prompts, int turns, bool backwards = false,
             std::uint32_t first = 0) {
    Leader leader(prompts, turns, first);
    leader.speakers = 2;
    leader.begin(backwards);
    const RunContext context = at_step(5);
    const std::vector<Speaker> speakers{{own, options, context},
                                        {other, other_options, context}};
    converse(prompt_rows(prompts, first), speakers, &leader.queue());
    return leader.talks();
  }
  void at_once(std::int64_t sequences, std::int64_t batch_tokens) {
    for (auto* each : {&options, &other_options}) {
      each->max_sequences = sequences;
      each->max_batch_tokens = batch_tokens;
    }
  }
  static GenerateOptions with_seed(std::uint64_t seed) {
    auto options = talking_options();
    options.seed = seed;
    return options;
  }

  SmallModel model;
  SmallModel another{6};
  Generator own{model.shape, model.weights};
  Generator other{another.shape, another.weights};
  GenerateOptions options = with_seed(3);
  GenerateOptions other_options = with_seed(4);
};

TEST_F(Rounds, BatchAndOrderDoNotChangeWhatTwoModelsSay_I1_I2) {
  const auto prompts = mixed_prompts();
  const auto base = talk(prompts, 4);
  for (const auto& [sample, said] : base) {
    EXPECT_EQ(said.turns, 4) << sample;
    EXPECT_GT(std::ranges::count(said.mask, 1), 0);
    EXPECT_GT(std::ranges::count(said.mask, 2), 0);
  }
  for (const std::int64_t sequences : {1, 2, 64})
    for (const std::int64_t batch_tokens : {1, 4, 2048}) {
      at_once(sequences, batch_tokens);
      EXPECT_EQ(talk(prompts, 4, /*backwards=*/true), base)
        << sequences << " sequences, " << batch_tokens << " tokens";
    }
  for (std::uint32_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(talk({prompts[i]}, 4, /*backwards=*/false, i).at(i), base.at(i));
}

/// Returns what a model says alone after the first `given` tokens.
TurnEnd said_alone(Generator& generator, const GenerateOptions& options,
                   std::uint32_t sample, const Ids& prompt, Ids given) {
  TurnQueue queue;
  TurnEnd said;
  queue.ask(
    {.sample = SampleId{sample}, .ids = std::move(given), .max_new_tokens = 5},
    [&](std::variant<TurnEnd, Failure> end) {
      said = std::get<TurnEnd>(end);
      queue.close();
    });
  generator.converse(prompt_rows({prompt}, sample), options, at_step(5),
                     &queue);
  return said;
}

TEST_F(Rounds, ATurnIsWhatItsModelSaysAloneAfterTheSameTokens_I2) {
  const auto prompts = mixed_prompts();
  for (const auto& [sample, said] : talk(prompts, 4))
    for (auto begin = said.mask.begin(); begin != said.mask.end();) {
      const auto speaker = *begin;
      const auto end = std::find_if(begin, said.mask.end(),
                                    [&](auto mask) { return mask != speaker; });
      const auto at = begin - said.mask.begin();
      const Ids given(said.ids.begin(), said.ids.begin() + at);
      const Ids want(said.ids.begin() + at,
                     said.ids.begin() + (end - said.mask.begin()));
      begin = end;
      if (speaker == 0)
        continue;
      const auto got
        = speaker == 1
            ? said_alone(own, options, sample, prompts[sample], given)
            : said_alone(other, other_options, sample, prompts[sample], given);
      EXPECT_EQ(got.ids, want) << "sample " << sample << ", token " << at;
    }
}

TEST_F(Rounds, EqualWeightsSayOtherThingsBySeedsOfTheirOwn) {
  TurnQueue queue;
  std::vector<Ids> said;
  const auto ask = [&](std::uint32_t speaker, auto then) {
    queue.ask({.sample = SampleId{0},
               .ids = {5, 6, 7, 8},
               .max_new_tokens = 6,
               .start = TurnStart::anything,
               .speaker = speaker},
              [&, then](std::variant<TurnEnd, Failure> end) {
                said.push_back(std::get<TurnEnd>(end).ids);
                then();
              });
  };
  ask(0, [&] { ask(1, [&] { queue.close(); }); });
  options.ignore_eos = other_options.ignore_eos = true;
  Generator twin(model.shape, model.weights);
  const RunContext context = at_step(5);
  const std::vector<Speaker> speakers{{own, options, context},
                                      {twin, other_options, context}};
  converse(prompt_rows(std::vector<Ids>{Ids{1}}), speakers, &queue);
  ASSERT_EQ(said.size(), 2U);
  EXPECT_NE(said[0], said[1]);
}

TEST_F(Rounds, EachModelReadsEachTokenOnce) {
  const auto prompts = mixed_prompts();
  std::size_t tokens = 0;
  for (const auto& [sample, said] : talk(prompts, 4))
    tokens += said.ids.size();
  EXPECT_LE(own.fed_tokens(), tokens);
  EXPECT_LE(other.fed_tokens(), tokens);
  EXPECT_GT(own.fed_tokens(), tokens / 2);
}

TEST_F(Rounds, ATurnOfAModelThatIsNotThereIsNamed) {
  TurnQueue queue;
  queue.ask({.sample = SampleId{0}, .ids = {1, 2}, .speaker = 2},
            [](const auto&) {});
  const RunContext context = at_step(5);
  const std::vector<Speaker> speakers{{own, options, context},
                                      {other, other_options, context}};
  try {
    converse(prompt_rows({{1, 2}}), speakers, &queue);
    FAIL() << "an unknown speaker must throw";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::bad_input);
    EXPECT_THAT(error.failure().what,
                ::testing::HasSubstr("sample 0: there is no model 2"));
  }
}

TEST_F(Rounds, TheStopFlagEndsIdleModels) {
  TurnQueue nobody_asks;
  std::atomic<bool> stop{false};
  RunContext context;
  context.stop = &stop;
  const std::vector<Speaker> speakers{{own, options, context},
                                      {other, other_options, context}};
  std::jthread later([&] { stop = true; });
  EXPECT_THROW(converse(prompt_rows({{1, 2}}), speakers, &nobody_asks),
               FailureError);
}

} // namespace
} // namespace troupe::models
