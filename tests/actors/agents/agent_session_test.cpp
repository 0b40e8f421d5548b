// A session between its program and a generator that the test plays.
#include "actors/agents/agent_session.hpp"
#include "models/agents/api_error.hpp"

#include "tests/support/models/agent_support.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace troupe::actors {
namespace {

using models::TurnEnd;
using nlohmann::json;
using ::testing::HasSubstr;

class AgentSessions : public ::testing::Test {
protected:
  /// Posts a request; its answer comes to `answers` at the same index.
  void post(const std::string& path, const std::string& body) {
    const auto index = answers_.size();
    answers_.emplace_back();
    session_->handle({.is_post = true, .path = path, .key = "", .body = body},
                     [this, index](const net::ApiResponse& answer) {
                       answers_[index] = answer;
                     });
  }
  void complete(const std::string& prompt, const std::string& more = "") {
    post("/v1/completions", R"({"prompt": ")" + prompt + "\"" + more + "}");
  }
  /// Returns the turns that were asked for since.
  std::vector<models::Turn> asked() {
    return turns_->take(std::chrono::milliseconds{0}).turns;
  }
  /// Ends the turn under way with a text.
  void say(const std::string& text) {
    const auto answer = testing::answer_of(model_->tokenizer, text);
    turns_->end(SampleId{3}, {answer.ids, answer.logprobs, false});
  }
  unsigned status(std::size_t i) const {
    return answers_[i] ? answers_[i]->status : 0;
  }
  json body(std::size_t i) const {
    return json::parse(answers_[i]->body);
  }

  std::shared_ptr<models::TurnQueue> turns_
    = std::make_shared<models::TurnQueue>();
  std::shared_ptr<AgentModel> model_ = std::make_shared<AgentModel>(
    AgentModel{.names = {"actor"},
               .tokenizer = testing::characters(),
               .chat = {},
               .stops = {},
               .most_tokens = 24});
  std::shared_ptr<AgentSession> session_ = std::make_shared<AgentSession>(
    SampleId{3}, model_, turns_,
    [](const std::function<void()>& job) { job(); });
  std::vector<std::optional<net::ApiResponse>> answers_;
};

TEST_F(AgentSessions, ARequestIsATurnAndItsReply) {
  complete("ab", R"(, "max_tokens": 5)");
  const auto turns = asked();
  ASSERT_EQ(turns.size(), 1U);
  EXPECT_EQ(turns[0].sample, SampleId{3});
  EXPECT_EQ(turns[0].ids, (std::vector{97, 98}));
  EXPECT_EQ(turns[0].max_new_tokens, 5);
  EXPECT_EQ(turns[0].start, models::TurnStart::anything);
  EXPECT_TRUE(session_->waits_for_model());
  EXPECT_EQ(status(0), 0U);
  say("cd");
  EXPECT_FALSE(session_->waits_for_model());
  EXPECT_EQ(status(0), 200U);
  EXPECT_EQ(body(0)["choices"][0]["text"], "cd");
}

TEST_F(AgentSessions, RequestsAreAnsweredOneAfterAnother) {
  complete("a");
  complete("b");
  EXPECT_EQ(asked().size(), 1U);
  say("x");
  EXPECT_EQ(status(1), 0U);
  const auto turns = asked();
  ASSERT_EQ(turns.size(), 1U);
  EXPECT_EQ(turns[0].ids, (std::vector{98}));
  say("y");
  EXPECT_EQ(body(1)["choices"][0]["text"], "y");
}

TEST_F(AgentSessions, SeveralAnswersAreDrawsOfTheSameTokens) {
  complete("a", R"(, "n": 2)");
  EXPECT_EQ(asked()[0].draw, 0U);
  say("x");
  EXPECT_EQ(status(0), 0U);
  EXPECT_EQ(asked()[0].draw, 1U);
  say("y");
  EXPECT_EQ(body(0)["choices"].size(), 2U);
  EXPECT_EQ(session_->record().ends().size(), 2U);
}

TEST_F(AgentSessions, ASecondModelIsAskedByItsName) {
  model_->names = {"actor", "opponent"};
  post("/v1/models", "");
  ASSERT_EQ(body(0)["data"].size(), 2U);
  EXPECT_EQ(body(0)["data"][1]["id"], "opponent");
  complete("ab");
  EXPECT_EQ(asked()[0].speaker, 0U);
  say("c");
  complete("abc", R"(, "model": "opponent")");
  const auto turns = asked();
  ASSERT_EQ(turns.size(), 1U);
  EXPECT_EQ(turns[0].speaker, 1U);
  EXPECT_EQ(turns[0].ids, (std::vector{97, 98, 99, 200}));
  say("d");
  EXPECT_EQ(body(2)["model"], "opponent");
  complete("abcd", R"(, "model": "actor")");
  EXPECT_EQ(asked()[0].speaker, 0U);
  say("e");
  EXPECT_THAT(session_->record().last_branch()->loss_mask,
              ::testing::ElementsAre(0, 0, 1, 1, 0, 0, 1, 1))
    << "each answer ends with a token of its own";
}

TEST_F(AgentSessions, AModelThatIsNotThereIsRefused) {
  complete("a", R"(, "model": "any")"); // one model has any name
  EXPECT_EQ(asked().size(), 1U);
  say("b");
  model_->names = {"actor", "opponent"};
  complete("a", R"(, "model": "oponent")");
  EXPECT_TRUE(asked().empty());
  EXPECT_EQ(status(1), 404U);
  EXPECT_EQ(body(1)["error"]["code"], "model_not_found");
  EXPECT_EQ(body(1)["error"]["message"],
            "The model `oponent` does not exist; there are actor, opponent");
}

TEST_F(AgentSessions, WithoutRoomTheAnswerIsEmpty) {
  complete(std::string(24, 'a'));
  EXPECT_TRUE(asked().empty());
  EXPECT_EQ(status(0), 200U);
  EXPECT_EQ(body(0)["choices"][0]["text"], "");
  EXPECT_EQ(body(0)["choices"][0]["finish_reason"], "length");
}

TEST_F(AgentSessions, AMistakeIsAnsweredAndNothingIsAsked) {
  post("/v1/completions", "{}");
  EXPECT_EQ(status(0), 400U);
  post("/v1/chat/completions", R"({"messages": [{"role": "user"}]})");
  EXPECT_THAT(body(1)["error"]["message"].get<std::string>(),
              HasSubstr("no chat template"));
  post("/v1/embeddings", "{}");
  EXPECT_EQ(status(2), 404U);
  EXPECT_TRUE(asked().empty());
}

TEST_F(AgentSessions, AnotherAttemptBeginsWithAnEmptyRecord) {
  post("/v1/reward", R"({"reward": 2})");
  EXPECT_EQ(session_->posted_reward(), 2);
  complete("a");
  asked();
  session_->begin_attempt();
  EXPECT_EQ(session_->posted_reward(), std::nullopt);
  complete("b");
  EXPECT_TRUE(asked().empty()) << "the old turn is under way";
  say("x");
  EXPECT_EQ(status(1), 0U) << "nobody waits for it";
  EXPECT_EQ(asked().size(), 1U);
  say("y");
  EXPECT_EQ(body(2)["choices"][0]["text"], "y");
  EXPECT_EQ(session_->record().num_answers(), 1U);
}

TEST_F(AgentSessions, AFailedGenerationIsAnError) {
  complete("a");
  asked();
  turns_->fail({Errc::aborted, "generation", "the run ends", ""});
  EXPECT_EQ(status(0), 503U);
}

} // namespace
} // namespace troupe::actors
