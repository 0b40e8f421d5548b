// The master's endpoint for agents between programs and workers, both of which
// the test plays.
#include "actors/membership/sessions_actor.hpp"

#include "tests/support/actors/driven_actors.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <set>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;

/// Requests that a worker got, and its sessions that have ended.
struct WorkerLog {
  std::vector<ProgramRequest> requests;
  std::vector<std::string> taken;
  std::set<std::string> ended;
  bool answers = true;
  std::vector<caf::typed_response_promise<ProgramReply>> owed;
};

AgentHostActor::behavior_type fake_host(Self<AgentHostActor, FakeState> self,
                                        std::shared_ptr<WorkerLog> log) {
  return {
    [=](run_atom, const Context&,
        const ProgramRequest& request) -> caf::result<ProgramReply> {
      log->requests.push_back(request);
      auto promise = self->make_response_promise<ProgramReply>();
      if (log->answers)
        promise.deliver(
          ProgramReply{200, "text/plain", "said " + request.body});
      else
        log->owed.push_back(promise);
      return promise;
    },
    [=](take_atom, const Context&,
        const TakeSession& order) -> caf::result<SessionTaken> {
      if (log->ended.contains(order.key))
        return to_error({Errc::stale, "worker", "the session has ended", ""});
      log->taken.push_back(order.key);
      return SessionTaken{SampleId{7}, R"({"prompt": "1+2"})", Bits{60.0}};
    },
    [](open_atom) {},
    [](done_atom, std::uint64_t) {},
    [](fail_atom, std::uint64_t, const FailureMessage&) {},
  };
}

class Sessions : public DrivenActors {
protected:
  void open(const std::string& key, std::uint32_t worker, bool waits) {
    tell(endpoint_, open_atom::value, Context{},
         OpenSession{WorkerId{worker}, hosts_[worker], key, waits});
  }
  /// Posts a request; its answer comes to `answers_` at the index returned.
  std::size_t post(const std::string& key, const std::string& path,
                   const std::string& body = "", bool is_too_long = false) {
    const auto index = answers_.size();
    answers_.emplace_back();
    share_->put({{.is_post = true,
                  .path = path,
                  .key = key,
                  .body = body,
                  .is_too_long = is_too_long},
                 [this, index](const net::ApiResponse& answer) {
                   answers_[index] = answer;
                 }});
    tell(endpoint_, take_atom::value);
    return index;
  }
  unsigned status(std::size_t i) const {
    return answers_[i] ? answers_[i]->status : 0;
  }

  std::shared_ptr<EndpointShare> share_
    = std::make_shared<EndpointShare>("t0ken");
  SessionsActor endpoint_
    = spawn(sessions_actor, SessionsSetup{.share = share_,
                                          .base_url = "http://host:1/v1",
                                          .within = 1h,
                                          .incarnation = Incarnation{1},
                                          .asks = asks_});
  std::vector<std::shared_ptr<WorkerLog>> logs_
    = {std::make_shared<WorkerLog>(), std::make_shared<WorkerLog>()};
  std::vector<AgentHostActor> hosts_
    = {spawn(fake_host, logs_[0]), spawn(fake_host, logs_[1])};
  std::vector<std::optional<net::ApiResponse>> answers_;
};

TEST_F(Sessions, ARequestGoesToTheWorkerOfItsKeyAndItsAnswerBack) {
  open("a", 0, /*waits=*/false);
  open("b", 1, /*waits=*/false);
  const auto i = post("b", "/v1/completions", "hi");
  EXPECT_EQ(status(i), 200U);
  EXPECT_EQ(answers_[i]->type, "text/plain");
  EXPECT_EQ(answers_[i]->body, "said hi");
  EXPECT_TRUE(logs_[0]->requests.empty());
  ASSERT_EQ(logs_[1]->requests.size(), 1U);
  EXPECT_EQ(logs_[1]->requests[0].path, "/v1/completions");
  EXPECT_EQ(logs_[1]->requests[0].key, "b");
}

TEST_F(Sessions, StrangersGetASentenceAndReachNoWorker) {
  open("a", 0, /*waits=*/true);
  for (const char* key : {"", "guessed", "t0ke"}) {
    EXPECT_EQ(status(post(key, "/v1/completions")), 401U) << key;
    EXPECT_EQ(status(post(key, "/v1/sessions")), 401U) << key;
  }
  EXPECT_THAT(answers_.back()->body, HasSubstr(".agents_token"));
  EXPECT_EQ(status(post("a", "/v1/sessions")), 401U) << "a key is no token";
  EXPECT_EQ(status(post("t0ken", "/v1/completions")), 404U);
  EXPECT_TRUE(logs_[0]->requests.empty());
  EXPECT_TRUE(logs_[0]->taken.empty());
  EXPECT_TRUE(share_->knows("t0ken") && share_->knows("a"));
  EXPECT_FALSE(share_->knows("guessed"));
}

TEST_F(Sessions, AKeyEndsWithItsSession) {
  open("a", 0, /*waits=*/false);
  tell(endpoint_, stop_atom::value, std::string("a"));
  EXPECT_EQ(status(post("a", "/v1/completions")), 401U);
  EXPECT_TRUE(logs_[0]->requests.empty());
}

TEST_F(Sessions, ALongBodyIsRefusedByName) {
  open("a", 0, /*waits=*/false);
  EXPECT_EQ(status(post("a", "/v1/completions", "", /*is_too_long=*/true)),
            413U);
}

TEST_F(Sessions, TheOneThatHasWaitedLongestIsHandedOut) {
  open("ours", 0, /*waits=*/false);
  open("first", 1, /*waits=*/true);
  open("second", 0, /*waits=*/true);
  const auto i = post("t0ken", "/v1/sessions");
  ASSERT_EQ(status(i), 200U);
  const auto body = json::parse(answers_[i]->body);
  EXPECT_EQ(body["key"], "first");
  EXPECT_EQ(body["row"]["prompt"], "1+2");
  EXPECT_EQ(body["sample"], 7);
  EXPECT_EQ(body["base_url"], "http://host:1/v1");
  EXPECT_EQ(body["timeout_s"], 60);
  EXPECT_THAT(logs_[1]->taken, ::testing::ElementsAre("first"));
}

TEST_F(Sessions, OneThatHasEndedMeanwhileIsPassedOver) {
  open("ended", 0, /*waits=*/true);
  open("next", 1, /*waits=*/true);
  logs_[0]->ended.insert("ended");
  const auto i = post("t0ken", "/v1/sessions");
  ASSERT_EQ(status(i), 200U);
  EXPECT_EQ(json::parse(answers_[i]->body)["key"], "next");
}

TEST_F(Sessions, AProgramWaitsForTheNextSession) {
  const auto first = post("t0ken", "/v1/sessions");
  const auto second = post("t0ken", "/v1/sessions");
  pass(5s);
  open("a", 0, /*waits=*/true);
  ASSERT_EQ(status(first), 200U);
  EXPECT_EQ(json::parse(answers_[first]->body)["key"], "a");
  EXPECT_EQ(status(second), 0U);
}

TEST_F(Sessions, AndAsksAgainIfNoneComesForLong) {
  const auto i = post("t0ken", "/v1/sessions");
  pass(19s);
  EXPECT_EQ(status(i), 0U);
  pass(3s);
  EXPECT_EQ(status(i), 204U);
  open("a", 0, /*waits=*/true);
  EXPECT_TRUE(logs_[0]->taken.empty()) << "nobody waits";
}

TEST_F(Sessions, ALostWorkerIsAnErrorOfItsPrograms) {
  open("a", 0, /*waits=*/false);
  logs_[0]->answers = false;
  const auto i = post("a", "/v1/completions");
  EXPECT_EQ(status(i), 0U);
  asks_->fail_all({Errc::peer_lost, "worker 0", "signal 9", ""});
  run();
  EXPECT_EQ(status(i), 503U);
  EXPECT_THAT(json::parse(answers_[i]->body)["error"]["message"],
              HasSubstr("worker 0"));
}

TEST_F(Sessions, AnAnswerThatIsTooLateIsAnErrorToo) {
  open("a", 0, /*waits=*/false);
  logs_[0]->answers = false;
  const auto i = post("a", "/v1/completions");
  asks_->expire(AskTable::Clock::now() + 2h);
  run();
  EXPECT_EQ(status(i), 504U);
}

} // namespace
} // namespace troupe::actors
