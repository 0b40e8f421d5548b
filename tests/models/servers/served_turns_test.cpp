// Turns of conversations as requests to a server, and its answers as their
// ends.
#include "config/base/error.hpp"
#include "models/servers/served_turns.hpp"

#include "tests/support/models/small_shape.hpp"
#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <set>
#include <variant>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int32_t turn_end_token = 3;

ServerAnswer turn_answer(std::vector<std::int32_t> ids,
                         const std::string& version = "3") {
  const auto count = ids.size();
  const bool stopped = ids.back() == turn_end_token;
  return {.ids = std::move(ids),
          .logprobs = std::vector(count, -1.5F),
          .stopped = stopped,
          .versions = {{version, 0, count}}};
}

class ServedTurnsTest : public ::testing::Test {
protected:
  ServedTurnsTest() {
    rows.samples = {SampleId{0}, SampleId{1}};
    const std::vector<std::int32_t> ids{4, 5, 6, 7, 8};
    rows.add(net::make_column("prompt_ids", DType::i32, {2, 3}, ids.data()));
    options.stop_ids = {turn_end_token};
    talks.emplace(shape, ResponseBatch{&rows, StepId{1}, 8}, options, version,
                  turns);
  }
  void ask(Turn turn) {
    const auto sample = turn.sample.value;
    turns.ask(std::move(turn),
              [this, sample](const std::variant<TurnEnd, Failure>& end) {
                ends[sample] = std::get<TurnEnd>(end);
              });
  }
  void ask_anything(std::vector<std::int32_t> ids, std::uint32_t draw = 0) {
    ask({.sample = SampleId{0},
         .ids = std::move(ids),
         .start = TurnStart::anything,
         .draw = draw});
  }

  const ModelShape shape = testing::small_shape();
  net::Rows rows;
  GenerateOptions options;
  const std::string version = "3";
  TurnQueue turns;
  std::optional<ServedTurns> talks;
  std::map<std::uint32_t, TurnEnd> ends;
};

TEST_F(ServedTurnsTest, ATurnIsOneRequestWithTheTokensSoFar) {
  const auto source = talks->requests();
  ask({.sample = SampleId{1}, .ids = {6, 7, 8}, .max_new_tokens = 2});
  ask({.sample = SampleId{0}, .ids = {4, 5}});
  const auto first = source.take();
  ASSERT_EQ(first.requests.size(), 2U);
  EXPECT_FALSE(first.closed);
  EXPECT_THAT(first.requests[0].prompt_ids, ElementsAre(6, 7, 8));
  EXPECT_EQ(first.requests[0].max_new_tokens, 2);
  EXPECT_EQ(first.requests[1].max_new_tokens, 8); // of the whole conversation
  talks->take(0, turn_answer({9, 10}));
  EXPECT_THAT(ends.at(1).ids, ElementsAre(9, 10));
  EXPECT_THAT(ends.at(1).logprobs, ElementsAre(-1.5F, -1.5F));
  EXPECT_TRUE(ends.at(1).truncated);
  ask({.sample = SampleId{1}, .ids = {6, 7, 8, 9, 10, 20}});
  turns.close();
  const auto second = source.take();
  EXPECT_TRUE(second.closed);
  ASSERT_EQ(second.requests.size(), 1U);
  EXPECT_THAT(second.requests[0].prompt_ids, ElementsAre(6, 7, 8, 9, 10, 20));
  EXPECT_EQ(second.requests[0].max_new_tokens, 5); // 3 + 8 - 6
  EXPECT_EQ(second.requests[0].num_begun, 3);
  talks->take(2, turn_answer({turn_end_token}));
  EXPECT_THAT(ends.at(1).ids, ElementsAre(turn_end_token));
  EXPECT_FALSE(ends.at(1).truncated);
  EXPECT_FALSE(ends.contains(0));
}

TEST_F(ServedTurnsTest, ANewServerIsAskedForTheTurnsThatTheOldOneOwes) {
  auto source = talks->requests();
  ask({.sample = SampleId{0}, .ids = {4, 5}});
  ask({.sample = SampleId{1}, .ids = {6, 7, 8}});
  const auto before = source.take();
  talks->take(0, turn_answer({turn_end_token}));
  source = talks->requests();
  ask({.sample = SampleId{0}, .ids = {4, 5, turn_end_token, 9}});
  const auto after = source.take();
  ASSERT_EQ(after.requests.size(), 2U);
  EXPECT_THAT(after.requests[0].prompt_ids, ElementsAre(6, 7, 8));
  EXPECT_EQ(after.requests[0].seed, before.requests[1].seed);
  talks->take(1, turn_answer({10, turn_end_token}));
  EXPECT_THAT(ends.at(0).ids, ElementsAre(10, turn_end_token));
  talks->take(0, turn_answer({11, turn_end_token}));
  EXPECT_THAT(ends.at(1).ids, ElementsAre(11, turn_end_token));
}

TEST_F(ServedTurnsTest, EachAnswerHasASeedOfItsOwn) {
  const auto source = talks->requests();
  std::set<std::uint64_t> seeds;
  const auto seed_of = [&](std::vector<std::int32_t> ids, std::uint32_t draw) {
    ask_anything(std::move(ids), draw);
    const auto seed = source.take().requests.at(0).seed;
    talks->take(seeds.size(), turn_answer({turn_end_token}));
    return seed;
  };
  seeds.insert(seed_of({9}, 0));
  seeds.insert(seed_of({9}, 1)); // the same tokens, answered again
  seeds.insert(seed_of({9, 10}, 0));
  EXPECT_EQ(seeds.size(), 3U);
}

TEST_F(ServedTurnsTest, ATurnWithoutRoomEndsWithoutARequest) {
  const auto source = talks->requests();
  ask_anything(std::vector<std::int32_t>(10, 9)); // 2 + 8
  EXPECT_TRUE(source.take().requests.empty());
  EXPECT_TRUE(ends.at(0).ids.empty());
  EXPECT_TRUE(ends.at(0).truncated);
}

TEST_F(ServedTurnsTest, EachTokenIsOfTheWeightsOfTheCall_I4) {
  const auto source = talks->requests();
  ask_anything({9});
  source.take();
  try {
    talks->take(0, turn_answer({turn_end_token}, "2"));
    FAIL() << "nothing was thrown";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::stale);
    EXPECT_THAT(error.what(), HasSubstr("weights '2', the call is for '3'"));
  }
  EXPECT_FALSE(ends.contains(0));
}

TEST_F(ServedTurnsTest, AStrangersSampleIsRefused) {
  const auto source = talks->requests();
  turns.ask({.sample = SampleId{7}, .ids = {4}}, [](const auto&) {});
  EXPECT_THROW(source.take(), FailureError);
}

} // namespace
} // namespace troupe::models
