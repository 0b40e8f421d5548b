// Generation by a server in another process: tests/support/vllm_stand_in.py and
// sglang_stand_in.py, which compute the model that they are given, correctly or
// as they are told to.
#include "tests/support/models/served_support.hpp"
#include "tests/support/models/turns_support.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace troupe::models {
namespace {

using ::testing::HasSubstr;

class ServedGenerationTest : public troupe::testing::ServedTest {
protected:
  ServedGenerationTest() {
    change_weights();
  }
  ServedSpec spec(const std::string& fault) const {
    return {.server = testing::vllm_stand_in(folder.path(), fault)};
  }
  ServedSpec sglang(const std::string& fault) const {
    return {.server = testing::sglang_stand_in(folder.path(), fault)};
  }
  /// Leads the prompts over three turns each, at the engine's weights.
  std::map<std::uint32_t, testing::Talk> converse(ServedGeneration& served) {
    testing::Leader leader({{4, 5, 6}, {7, 8}, {4, 5, 6}}, 3);
    leader.max_tokens = 4;
    leader.begin();
    served.converse(*engine, "1", {&prompts, StepId{1}, 40}, options, context,
                    leader.queue());
    return leader.talks();
  }
  static net::Rows
  rows_of_talks(const std::map<std::uint32_t, testing::Talk>& talks) {
    std::vector<net::Rows> rows;
    for (const auto& [sample, talk] : talks) {
      const std::vector lengths{static_cast<std::uint32_t>(talk.ids.size())};
      auto& one = rows.emplace_back();
      one.samples = {SampleId{sample}};
      one.add(
        net::make_column("sequence_ids", DType::i32, lengths, talk.ids.data()));
      one.add(
        net::make_column("loss_mask", DType::u8, lengths, talk.mask.data()));
      one.add(net::make_column("logprobs", DType::f32, lengths,
                               talk.logprobs.data()));
    }
    return net::concat(rows);
  }
  std::string failure_with(const std::string& fault) {
    return failure_of(spec(fault));
  }
};

TEST_F(ServedGenerationTest, TokensAreOfTheWeightsOfEachVersion) {
  ServedGeneration served(spec(""));
  const auto first = generate(served, "1");
  EXPECT_EQ(first.num_samples(), 3U);
  EXPECT_LT(gap_of(first), 1e-4);
  const auto report = served.take_report();
  EXPECT_LT(report.gap.value(), 1e-4);
  EXPECT_GT(report.updated_bytes, 0U);
  EXPECT_EQ(report.restarts, 0U);
  generate(served, "1");
  EXPECT_FALSE(served.take_report().gap); // it has that version already
  change_weights();
  EXPECT_LT(gap_of(generate(served, "2")), 1e-4);
}

TEST_F(ServedGenerationTest, WeightsOfSeveralDevicesAreGatheredPerVersion) {
  auto gathering = spec("");
  int gathered = 0;
  gathering.gather = [&](std::span<std::byte> whole) {
    ++gathered;
    const auto plane = weights();
    ASSERT_EQ(whole.size(), plane.size());
    std::ranges::copy(plane, whole.begin());
  };
  ServedGeneration served(gathering);
  EXPECT_LT(gap_of(generate(served, "1")), 1e-4);
  generate(served, "1");
  EXPECT_EQ(gathered, 1);
  change_weights();
  EXPECT_LT(gap_of(generate(served, "2")), 1e-4);
  EXPECT_EQ(gathered, 2);
}

TEST_F(ServedGenerationTest, ADeviceThatAssistsStartsNoServer) {
  auto absent = spec("");
  absent.server.program.argv = {"/bin/false"};
  ServedGeneration served(absent);
  const std::vector<ResponseBatch> batches{
    {&prompts, StepId{1}, options.max_new_tokens}};
  std::size_t rows = 0;
  int ended = 0;
  served.assist(*engine, "1", batches, context,
                {.on_batch = [&](std::size_t, const net::Rows& made) {
                  ++ended;
                  rows += made.num_samples();
                }});
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(rows, 0U);
}

TEST_F(ServedGenerationTest, AServerThatDiesIsStartedAgainForWhatItOwes) {
  // at once; after an error, as vLLM when its engine was killed; not at all
  for (const auto* fault :
       {"die_at:3", "error_then_die_at:3", "sick_at:3", "mute_at:3"}) {
    std::filesystem::remove(folder / "count");
    ServedGeneration served(spec(fault));
    const auto rows = generate(served, "1");
    EXPECT_EQ(rows.num_samples(), 3U) << fault;
    EXPECT_LT(gap_of(rows), 1e-4) << fault;
    EXPECT_EQ(served.take_report().restarts, 1U) << fault;
  }
}

TEST_F(ServedGenerationTest, ConversationsAreOfTheWeightsOfTheirVersion) {
  ServedGeneration served(spec(""));
  const auto talks = converse(served);
  EXPECT_LT(gap_of(rows_of_talks(talks)), 1e-4);
  for (const auto& [sample, talk] : talks)
    EXPECT_EQ(talk.turns, 3) << sample;
  EXPECT_LT(served.take_report().gap.value(), 1e-4);
  ServedGeneration again(spec(""));
  EXPECT_EQ(converse(again), talks);
}

TEST_F(ServedGenerationTest, TurnsThatADeadServerOwesAreAskedAgain) {
  ServedGeneration alive(spec(""));
  const auto talks = converse(alive);
  for (const auto* fault : {"die_at:5", "error_then_die_at:5"}) {
    std::filesystem::remove(folder / "count");
    ServedGeneration served(spec(fault));
    EXPECT_EQ(converse(served), talks) << fault;
    EXPECT_EQ(served.take_report().restarts, 1U) << fault;
  }
}

TEST_F(ServedGenerationTest, AConversationThatFailsIsNoLostServer) {
  ServedGeneration served(spec(""));
  TurnQueue turns;
  turns.fail({.code = Errc::peer_lost,
              .who = "tool",
              .what = "it has ended",
              .cause = ""});
  try {
    served.converse(*engine, "1", {&prompts, StepId{1}, 9}, options, context,
                    turns);
    FAIL() << "nothing was thrown";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().who, "tool");
  }
  EXPECT_EQ(served.take_report().restarts, 0U);
}

TEST_F(ServedGenerationTest, ADeviceWithoutPromptsStartsNoServer) {
  auto absent = spec("");
  absent.server.program.argv = {"/bin/false"};
  ServedGeneration served(absent);
  const net::Rows none;
  const std::vector<ResponseBatch> batches{{&none, StepId{1}, 4}};
  int ended = 0;
  served.generate(*engine, "1", batches, options, context,
                  {.on_batch = [&](std::size_t, net::Rows) { ++ended; }});
  EXPECT_EQ(ended, 1);
}

TEST_F(ServedGenerationTest, AMistakeIsFoundBeforeTheFirstToken) {
  EXPECT_THAT(failure_with("drop_tensor"), HasSubstr("missing"));
  EXPECT_THAT(failure_with("refuse_update"), HasSubstr("told to refuse"));
  EXPECT_THAT(failure_with("old_weights"),
              HasSubstr("not those of the weights"));
  EXPECT_THAT(failure_with("wrong_version"), HasSubstr("weights 'old'"));
  EXPECT_THAT(failure_with("no_version"), HasSubstr("the weights of 0 of its"));
}

TEST_F(ServedGenerationTest, SglangTakesWeightsFromAMemoryFile) {
  ServedGeneration served(sglang(""));
  const auto first = generate(served, "1");
  EXPECT_EQ(first.num_samples(), 3U);
  EXPECT_LT(gap_of(first), 1e-4);
  change_weights();
  EXPECT_LT(gap_of(generate(served, "2")), 1e-4);
  EXPECT_EQ(served.take_report().restarts, 0U);
}

TEST_F(ServedGenerationTest, AMistakeOfSglangIsFoundBeforeTheFirstToken) {
  EXPECT_THAT(failure_of(sglang("drop_tensor")),
              HasSubstr("not those of the weights"));
  EXPECT_THAT(failure_of(sglang("refuse_update")), HasSubstr("told to refuse"));
  EXPECT_THAT(failure_of(sglang("old_weights")),
              HasSubstr("not those of the weights"));
  EXPECT_THAT(failure_of(sglang("wrong_version")), HasSubstr("weights 'old'"));
  EXPECT_THAT(failure_of(sglang("no_version")), HasSubstr("weight_version"));
}

TEST_F(ServedGenerationTest, ASglangThatDiesIsStartedAgain) {
  ServedGeneration served(sglang("error_then_die_at:3"));
  EXPECT_LT(gap_of(generate(served, "1")), 1e-4);
  EXPECT_EQ(served.take_report().restarts, 1U);
}

TEST_F(ServedGenerationTest, AProgramThatIsNoServerIsNamedWithItsLastLine) {
  auto wrong = spec("");
  wrong.server.program.argv = {"/bin/sh", "-c", "echo no such model; exit 3"};
  ServedGeneration served(wrong);
  try {
    generate(served, "1");
    FAIL() << "nothing was thrown";
  } catch (const FailureError& error) {
    EXPECT_THAT(error.failure().cause, HasSubstr("exit code 3"));
    EXPECT_THAT(error.failure().cause, HasSubstr("no such model"));
  }
}

} // namespace
} // namespace troupe::models
