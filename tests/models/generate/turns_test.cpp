// Conversations: turns that continue a sample after tokens from elsewhere. The
// tokens are the same in any batch and order (I2), the cache is kept while
// there is space, and limits and errors are reported.
#include "config/base/error.hpp"
#include "models/generate/generator.hpp"
#include "models/generate/turns.hpp"
#include "models/kernels/kv_cache.hpp"

#include "tests/support/models/generation_support.hpp"
#include "tests/support/models/turns_support.hpp"
#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <map>
#include <thread>
#include <variant>

namespace troupe::models {
namespace {

using troupe::testing::at_step;
using troupe::testing::Ids;
using troupe::testing::Leader;
using troupe::testing::mixed_prompts;
using troupe::testing::prompt_rows;
using troupe::testing::responses_of;
using troupe::testing::SmallModel;
using troupe::testing::Talk;
using troupe::testing::talking_options;

std::map<std::uint32_t, Talk> talk(Generator& generator, Leader& leader,
                                   const std::vector<Ids>& prompts,
                                   const GenerateOptions& options,
                                   std::uint32_t first = 0) {
  generator.converse(prompt_rows(prompts, first), options, at_step(5),
                     &leader.queue());
  return leader.talks();
}

TEST(Turns, AListenerIsCalledForWhateverArrives) {
  TurnQueue queue;
  int calls = 0;
  const auto take = [&] { return queue.take(std::chrono::milliseconds{0}); };
  queue.listen([&] { ++calls; });
  queue.ask({.sample = SampleId{1}, .ids = {4}}, [](const auto&) {});
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(take().turns.size(), 1U);
  queue.close();
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(take().closed);
  queue.fail({.code = Errc::bad_input, .who = "", .what = "", .cause = ""});
  EXPECT_EQ(calls, 3);
  queue.listen({});
  queue.close();
  EXPECT_EQ(calls, 3);
}

TEST(Turns, BatchAndOrderDoNotChangeAConversation_I1_I2) {
  const SmallModel model;
  Generator generator(model.shape, model.weights);
  const auto prompts = mixed_prompts();
  auto options = talking_options();
  Leader leader(prompts, 3);
  leader.begin();
  const auto base = talk(generator, leader, prompts, options);
  for (const auto& [sample, said] : base)
    EXPECT_EQ(said.turns, 3) << sample;
  for (const std::int64_t sequences : {1, 2, 64})
    for (const std::int64_t batch_tokens : {1, 4, 2048}) {
      options.max_sequences = sequences;
      options.max_batch_tokens = batch_tokens;
      Leader other(prompts, 3);
      other.begin(/*backwards=*/true);
      EXPECT_EQ(talk(generator, other, prompts, options), base)
        << sequences << " sequences, " << batch_tokens << " tokens";
    }
  for (std::uint32_t i = 0; i < prompts.size(); ++i) {
    Leader alone({prompts[i]}, 3, i);
    alone.begin();
    EXPECT_EQ(talk(generator, alone, {prompts[i]}, talking_options(), i).at(i),
              base.at(i));
  }
}

// The first sample of a prompt names the group of its mates.
TEST(Turns, ATurnThatBeginsWithAnythingSharesNoPromptWithItsMates_I2) {
  const SmallModel model;
  Generator generator(model.shape, model.weights);
  const std::vector<Ids> prompts(3, Ids{5, 6, 7, 8});
  const auto ends_of = [&](const std::vector<std::uint32_t>& samples) {
    TurnQueue queue;
    std::map<std::uint32_t, Ids> ends;
    for (const auto sample : samples) {
      Turn turn{.sample = SampleId{sample},
                .ids = prompts.front(),
                .max_new_tokens = 5};
      if (sample == 0) {
        turn.start = TurnStart::anything;
        turn.ids = {30, 31, 32, 33, 34};
      }
      queue.ask(turn, [&, sample](std::variant<TurnEnd, Failure> end) {
        ends[sample] = std::get<TurnEnd>(end).ids;
        if (ends.size() == samples.size())
          queue.close();
      });
    }
    generator.converse(prompt_rows(prompts), talking_options(), at_step(5),
                       &queue);
    return ends;
  };
  const auto together = ends_of({0, 1, 2});
  for (const std::uint32_t sample : {0, 1, 2})
    EXPECT_EQ(together.at(sample), ends_of({sample}).at(sample)) << sample;
}

TEST(Turns, TheFirstEqualsGeneration) {
  const SmallModel model;
  Generator generator(model.shape, model.weights);
  const auto prompts = mixed_prompts();
  Leader leader(prompts, 1);
  leader.max_tokens = 0;
  leader.begin();
  const auto talks = talk(generator, leader, prompts, talking_options());
  const auto responses = responses_of(
    generator.run(prompt_rows(prompts), talking_options(), at_step(5)));
  for (std::uint32_t i = 0; i < prompts.size(); ++i) {
    const auto& ids = talks.at(i).ids;
    EXPECT_EQ(Ids(ids.begin() + static_cast<std::ptrdiff_t>(prompts[i].size()),
                  ids.end()),
              responses[i].ids);
  }
}

TEST(Turns, CachedTokensAreNotPrefilledAgain) {
  const SmallModel model;
  Generator generator(model.shape, model.weights);
  const auto prompts = mixed_prompts();
  Leader leader(prompts, 3);
  leader.begin();
  talk(generator, leader, prompts, talking_options());
  // every token once, but for the last one of each conversation
  EXPECT_EQ(generator.fed_tokens(), leader.tokens() - prompts.size());

  auto crowded = talking_options();
  KvCache cache(model.shape);
  crowded.kv_cache_bytes = 2 * cache.slot_bytes(9 + 40);
  Leader evicted(prompts, 3);
  evicted.begin();
  talk(generator, evicted, prompts, crowded);
  EXPECT_GT(generator.fed_tokens(), leader.tokens());
  EXPECT_EQ(evicted.talks(), leader.talks());
}

TEST(Turns, SamplesOfAPromptShareItsCache) {
  const SmallModel model;
  Generator generator(model.shape, model.weights);
  const std::vector<Ids> prompts(4, {5, 6, 7, 8, 9, 10, 11, 12, 13});
  Leader leader(prompts, 2);
  leader.begin();
  talk(generator, leader, prompts, talking_options());
  EXPECT_EQ(generator.fed_tokens(), leader.tokens() - 4 - 3 * 8);
}

/// Generates turns one after another, each from tokens of its own.
std::vector<TurnEnd> turns_in_order(Generator& generator,
                                    std::vector<Turn> turns) {
  TurnQueue queue;
  std::vector<TurnEnd> ends;
  std::function<void(std::size_t)> ask = [&](std::size_t i) {
    if (i == turns.size())
      return queue.close();
    queue.ask(turns[i], [&, i](std::variant<TurnEnd, Failure> end) {
      ends.push_back(std::get<TurnEnd>(end));
      ask(i + 1);
    });
  };
  ask(0);
  auto options = talking_options();
  options.ignore_eos = true;
  generator.converse(prompt_rows(std::vector<Ids>{Ids{1}}), options, at_step(5),
                     &queue);
  return ends;
}

Turn free_turn(Ids ids, std::uint32_t draw = 0) {
  return {.sample = SampleId{0},
          .ids = std::move(ids),
          .max_new_tokens = 6,
          .start = TurnStart::anything,
          .draw = draw};
}

TEST(Turns, BranchesOfASampleHaveTheTokensTheyHaveAlone_I2) {
  const SmallModel model;
  Generator generator(model.shape, model.weights);
  const Ids first{5, 6, 7, 8};
  const Ids second{5, 6, 9};
  const auto both = turns_in_order(
    generator, {free_turn(first), free_turn(second), free_turn(first)});
  ASSERT_EQ(both.size(), 3U);
  EXPECT_EQ(both[0].ids, both[2].ids);
  EXPECT_EQ(both[0].logprobs, both[2].logprobs);
  EXPECT_EQ(turns_in_order(generator, {free_turn(second)})[0].ids, both[1].ids);
}

TEST(Turns, AnotherDrawOfTheSameTokensIsAnotherAnswer) {
  const SmallModel model;
  Generator generator(model.shape, model.weights);
  const Ids ids{5, 6, 7, 8};
  const auto ends = turns_in_order(
    generator, {free_turn(ids), free_turn(ids, 1), free_turn(ids, 1)});
  EXPECT_NE(ends[0].ids, ends[1].ids);
  EXPECT_EQ(ends[1].ids, ends[2].ids);
}

TEST(Turns, LimitsEndATurnAndAConversation) {
  const SmallModel model;
  Generator generator(model.shape, model.weights);
  auto options = talking_options();
  options.max_new_tokens = 8;
  options.ignore_eos = true;
  Leader leader({{1, 2, 3}}, 10);
  leader.begin();
  const auto said = talk(generator, leader, {{1, 2, 3}}, options).at(0);
  EXPECT_LE(said.turns, 3); // the last one has no space
  const auto own = std::ranges::count(said.mask, 1);
  EXPECT_GE(own, 5);
  EXPECT_LE(own, 8);
}

TEST(Turns, AFailedConversationEndsTheGeneration) {
  const SmallModel model;
  Generator generator(model.shape, model.weights);
  TurnQueue queue;
  int failures = 0;
  queue.ask({SampleId{0}, {1, 2}, 0}, [&](const auto& end) {
    if (std::holds_alternative<TurnEnd>(end))
      queue.fail({Errc::bad_input, "actor x", "sample 0: no", ""});
  });
  queue.ask({SampleId{0}, {1, 2}, 0}, // one turn at a time
            [&](const auto& end) { failures += end.index() == 1 ? 1 : 0; });
  EXPECT_EQ(failures, 1);
  try {
    generator.converse(prompt_rows({{1, 2}}), talking_options(), at_step(5),
                       &queue);
    FAIL() << "a failed conversation must throw";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().who, "actor x");
  }
  queue.ask({SampleId{0}, {1, 2}, 0},
            [&](const auto& end) { failures += end.index() == 1 ? 1 : 0; });
  EXPECT_EQ(failures, 2);
}

TEST(Turns, TheStopFlagEndsAnIdleGenerator) {
  const SmallModel model;
  Generator generator(model.shape, model.weights);
  TurnQueue nobody_asks;
  std::atomic<bool> stop{false};
  RunContext context;
  context.stop = &stop;
  std::jthread later([&] { stop = true; });
  EXPECT_THROW(generator.converse(prompt_rows({{1, 2}}), talking_options(),
                                  context, &nobody_asks),
               FailureError);
}

TEST(Turns, BadTurnsAreNamed) {
  const SmallModel model;
  for (const Ids& ids : {Ids{1, 3}, Ids{1, 2, 500}, Ids{1}}) {
    Generator generator(model.shape, model.weights);
    TurnQueue queue;
    queue.ask({SampleId{0}, ids, 0}, [](const auto&) {});
    try {
      generator.converse(prompt_rows({{1, 2}}), talking_options(), at_step(1),
                         &queue);
      FAIL() << "a bad turn must throw";
    } catch (const FailureError& error) {
      EXPECT_EQ(error.failure().code, Errc::bad_input);
      EXPECT_THAT(error.failure().what, ::testing::HasSubstr("sample 0"));
    }
  }
}

} // namespace
} // namespace troupe::models
