// Conversations led by Python, as lines and answers, without a process.
#include "actors/user/python_conversation.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <limits>

namespace troupe::actors {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using Kind = PythonStep::Kind;

struct PythonConversationTest : ::testing::Test {
  static UserEntry leader() {
    UserEntry entry;
    entry.call.reads = {{"prompt", KeyType::text, Per::sample},
                        {"weight", KeyType::f32, Per::token}};
    entry.call.writes = {{"asked", KeyType::f32, Per::sample},
                         {"count", KeyType::i32, Per::sample},
                         {"right", KeyType::u8, Per::sample},
                         {"note", KeyType::text, Per::sample}};
    return entry;
  }
  static Sample first() {
    const float infinite = std::numeric_limits<float>::infinity();
    Sample sample{7, 3};
    sample.set(keys::prompt, "1+2");
    sample.set(Key<float, per_token>{"weight"}, std::vector{0.5F, infinite});
    return sample;
  }
  /// Lets the model say `text`.
  std::string said(const std::string& text) {
    sample.set(keys::turn, text);
    sample.set(keys::response, "all of it");
    sample.set(keys::truncated, 1);
    return talk.next(sample);
  }

  UserEntry entry = leader();
  Sample sample = first();
  PythonConversation talk{5, entry, sample};
};

TEST_F(PythonConversationTest, BeginsWithWhatItsCallReads) {
  EXPECT_EQ(
    Json::parse(talk.whole()),
    Json::parse(R"({"id": 5, "begin": {"sample": 7, "group": 3, "values":
              {"prompt": "1+2", "weight": [0.5, "inf"]}}, "turns": [],
              "said": []})"));
}

TEST_F(PythonConversationTest, AnAnswerAppendsAndLimitsTheNextTurn) {
  const auto step
    = talk.take(R"({"appended": "hint\n", "max_tokens": 9})", sample);
  EXPECT_EQ(step.kind, Kind::extend);
  EXPECT_EQ(step.max_tokens, 9U);
  EXPECT_EQ(sample[keys::appended], "hint\n");
}

TEST_F(PythonConversationTest, ATurnIsTheCallsOwnRolesUnlessItNamesAnother) {
  EXPECT_EQ(talk.take(R"({"appended": "", "max_tokens": 0})", sample).role, "");
  EXPECT_EQ(
    talk
      .take(R"({"appended": "", "max_tokens": 0, "role": "opponent"})", sample)
      .role,
    "opponent");
}

TEST_F(PythonConversationTest, ATurnThatEndsWithinACharacterIsStillALine) {
  talk.take(R"({"appended": "", "max_tokens": 0})", sample);
  const auto line = Json::parse(said("caf\xc3"));
  EXPECT_EQ(line.at("id"), 5);
  EXPECT_EQ(line.at("turn"),
            Json::parse(R"({"turn": "caf\ufffd", "response": "all of it",
                            "truncated": true})"));
}

TEST_F(PythonConversationTest, AProcessThatForgotItIsToldAllOfIt) {
  talk.take(R"({"appended": "a", "max_tokens": 0})", sample);
  said("b");
  EXPECT_EQ(talk.take(R"({"forgotten": true})", sample).kind, Kind::forgotten);
  const auto line = Json::parse(talk.whole());
  ASSERT_EQ(line.at("turns").size(), 1U);
  EXPECT_EQ(line.at("turns").at(0).at("turn"), "b");
  EXPECT_EQ(line.at("said"),
            Json::parse(R"([{"appended": "a", "max_tokens": 0}])"));
  EXPECT_EQ(sample[keys::appended], "a") << "not appended twice";
}

TEST_F(PythonConversationTest, TheEndSetsTheKeysOfTheirTypes) {
  const auto step = talk.take(
    R"({"appended": ".", "values": {"asked": 0.5, "count": -3, "right": 1,
        "note": "well"}})",
    sample);
  EXPECT_EQ(step.kind, Kind::end);
  EXPECT_EQ(sample[Key<float>{"asked"}], 0.5F);
  EXPECT_EQ(sample[Key<std::int32_t>{"count"}], -3);
  EXPECT_EQ(sample[Key<std::uint8_t>{"right"}], 1);
  EXPECT_EQ(sample[Key<std::string>{"note"}], "well");
}

TEST_F(PythonConversationTest, AMistakeIsThrownAsItIs) {
  try {
    talk.take(R"({"error": "f.py:3: KeyError: 'x'"})", sample);
    ADD_FAILURE() << "accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "f.py:3: KeyError: 'x'");
  }
}

TEST_F(PythonConversationTest, ItsProcessGetsTheFileTheNameAndTheKeys) {
  entry.python = PythonEntry{.function = {"talk.py", "solve"}};
  const auto command = python_conversation_command(entry);
  ASSERT_EQ(command.size(), 6U);
  EXPECT_THAT(command[2], HasSubstr("iscoroutinefunction"));
  EXPECT_EQ(command[3], "talk.py");
  EXPECT_EQ(command[4], "solve");
  EXPECT_EQ(Json::parse(command[5]).at("reads").at(1),
            Json::parse(R"(["weight", "f32", "token"])"));
}

} // namespace
} // namespace troupe::actors
