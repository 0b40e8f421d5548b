// Sessions as programs from outside get them, and what these say at the end.
#include "models/agents/api_error.hpp"
#include "models/agents/session_report.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace troupe::models {
namespace {

using ::testing::HasSubstr;

constexpr bool needed = true;

TEST(SessionReport, ATakenSessionHasItsRowAsItsFileHasIt) {
  const auto text
    = taken_session_body({.key = "troupe-1",
                          .sample = 7,
                          .row = R"({"prompt": "1+2", "x": 0.10})",
                          .timeout_s = 2.5},
                         "http://127.0.0.1:8000/v1");
  EXPECT_THAT(text, HasSubstr(R"("x": 0.10)"));
  const auto body = nlohmann::json::parse(text);
  EXPECT_EQ(body["key"], "troupe-1");
  EXPECT_EQ(body["sample"], 7);
  EXPECT_EQ(body["row"]["prompt"], "1+2");
  EXPECT_EQ(body["base_url"], "http://127.0.0.1:8000/v1");
  EXPECT_EQ(body["timeout_s"], 2.5);
}

TEST(SessionReport, RewardAndFailureMayBeLeftOut) {
  for (const char* text : {"", "{}", R"({"reward": null, "failed": false})"}) {
    EXPECT_EQ(parse_session_report(text).reward, std::nullopt) << text;
    EXPECT_FALSE(parse_session_report(text).failed) << text;
  }
  EXPECT_EQ(parse_session_report(R"({"reward": 1.5})").reward, 1.5);
  EXPECT_TRUE(parse_session_report(R"({"failed": true})").failed);
}

TEST(SessionReport, AMistakeIsASentence) {
  for (const char* text : {"[]", "{", "1", R"({"reward": "1"})",
                           R"({"reward": 1e999})", R"({"failed": 1})"})
    EXPECT_THROW(parse_session_report(text), ApiError) << text;
}

TEST(SessionReport, TheLastNumberIsTheReward) {
  EXPECT_EQ(session_end(SessionReport{.reward = 2}, 1.0, needed).reward, 2);
  EXPECT_EQ(session_end(SessionReport{}, 1.0, needed).reward, 1);
  EXPECT_EQ(session_end(SessionReport{}, 1.0, needed).failure, "");
}

TEST(SessionReport, ASessionFailsBySayingSoOrWithoutTheNumberThatIsTheScore) {
  EXPECT_THAT(
    session_end(SessionReport{.reward = 1, .failed = true}, {}, needed).failure,
    HasSubstr("said that it failed"));
  EXPECT_THAT(session_end(SessionReport{}, {}, needed).failure,
              HasSubstr("without a reward"));
  EXPECT_EQ(session_end(SessionReport{}, {}, !needed).failure, "");
  EXPECT_THAT(late_session_end(60).failure,
              HasSubstr("within 60 s (agents.timeout_s)"));
}

} // namespace
} // namespace troupe::models
