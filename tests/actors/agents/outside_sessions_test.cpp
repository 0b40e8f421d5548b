// Sessions of a call between programs from outside, which the test plays, and
// the rows that they become.
#include "actors/agents/outside_sessions.hpp"
#include "config/base/error.hpp"

#include "tests/support/models/agent_support.hpp"
#include <gmock/gmock.h>

#include <future>
#include <set>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// The master's endpoint: the keys of sessions that wait for a program.
class WaitingKeys final : public MasterSessions {
public:
  void open(const std::string& key, bool waits) override {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(waits);
    keys_.push_back(key);
    came_.notify_all();
  }
  void close(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    closed_.insert(key);
  }
  std::string url() const override {
    return "http://master:1/v1";
  }

  /// Waits for the next key; empty: none came.
  std::string next() {
    std::unique_lock lock(mutex_);
    if (!came_.wait_for(lock, 20s, [&] { return !keys_.empty(); }))
      return "";
    auto key = keys_.front();
    keys_.pop_front();
    return key;
  }
  bool is_closed(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    return closed_.contains(key);
  }

private:
  mutable std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::string> keys_;
  std::set<std::string> closed_;
};

class Outside : public ::testing::Test {
protected:
  Outside() {
    auto master = std::make_unique<WaitingKeys>();
    master_ = master.get();
    host_.connect(std::move(master));
    options_.within = 60s;
    options_.needs_reward = true;
  }

  void begin(std::uint32_t num_sessions) {
    std::vector<AgentTask> tasks;
    for (std::uint32_t i = 0; i < num_sessions; ++i)
      tasks.push_back({.sample = SampleId{i},
                       .row = R"({"prompt": "1+2"})",
                       .session = std::make_shared<AgentSession>(
                         SampleId{i}, model_, turns_,
                         [](const std::function<void()>& job) { job(); })});
    sessions_.emplace(
      host_, options_, std::move(tasks),
      AgentPrograms::Events{
        .on_end = [this](std::size_t i,
                         const models::SessionEnd& end) { ends_[i] = end; },
        .on_all_ended =
          [this](const std::optional<Failure>& failure) {
            over_.set_value(failure);
          }});
  }
  /// Ends a session as its program; returns the status.
  unsigned end(const std::string& key, const std::string& body) {
    unsigned status = 0;
    host_.handle(
      {.is_post = true, .path = "/v1/sessions/end", .key = key, .body = body},
      [&](const net::ApiResponse& answer) { status = answer.status; });
    return status;
  }
  /// Waits for the end of all; returns why they were ended.
  std::optional<Failure> over() {
    auto ended = over_.get_future();
    if (ended.wait_for(20s) != std::future_status::ready)
      return Failure{Errc::deadline, "test", "not over", ""};
    return ended.get();
  }

  AgentHost host_{"worker"};
  WaitingKeys* master_ = nullptr; ///< the host's
  AgentProgramOptions options_;
  std::shared_ptr<models::TurnQueue> turns_
    = std::make_shared<models::TurnQueue>();
  std::shared_ptr<AgentModel> model_ = std::make_shared<AgentModel>(
    AgentModel{.names = {"actor"},
               .tokenizer = testing::characters(),
               .chat = {},
               .stops = {},
               .most_tokens = 24});
  std::map<std::size_t, models::SessionEnd> ends_; ///< read once it is over
  std::promise<std::optional<Failure>> over_;
  std::optional<OutsideSessions> sessions_; ///< last: it uses the others
};

TEST_F(Outside, ASessionIsTakenOnceLedAndEndedWithItsReward) {
  begin(1);
  const auto key = master_->next();
  const auto taken = host_.take(key);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->sample, 0U);
  EXPECT_EQ(taken->row, R"({"prompt": "1+2"})");
  EXPECT_EQ(taken->timeout_s, 60);
  EXPECT_FALSE(host_.take(key)) << "another program has it";
  EXPECT_EQ(end(key, R"({"reward": 0.5})"), 200U);
  EXPECT_EQ(over(), std::nullopt);
  EXPECT_EQ(ends_.at(0).reward, 0.5);
  EXPECT_EQ(ends_.at(0).failure, "");
  EXPECT_TRUE(master_->is_closed(key));
  EXPECT_EQ(end(key, "{}"), 401U) << "a key ends with its session";
  const auto counts = host_.take_counts();
  EXPECT_EQ(counts.sessions, 1U);
  EXPECT_EQ(counts.failed, 0U);
  EXPECT_EQ(counts.taken, 1U);
  EXPECT_GE(counts.waited_s, 0);
}

TEST_F(Outside, AMistakeAtTheEndIsToldAndTheSessionGoesOn) {
  begin(1);
  const auto key = master_->next();
  host_.take(key);
  EXPECT_EQ(end(key, R"({"reward": "much"})"), 400U);
  EXPECT_EQ(end(key, R"({"reward": 1})"), 200U);
  EXPECT_EQ(over(), std::nullopt);
  EXPECT_EQ(ends_.at(0).reward, 1);
}

TEST_F(Outside, AFailedOneWaitsAgainUnderAnotherKey) {
  options_.retries = 1;
  begin(1);
  const auto first = master_->next();
  host_.take(first);
  end(first, R"({"failed": true})");
  const auto second = master_->next();
  EXPECT_NE(first, second);
  ASSERT_TRUE(host_.take(second));
  end(second, R"({"reward": 1})");
  EXPECT_EQ(over(), std::nullopt);
  EXPECT_EQ(ends_.at(0).reward, 1);
  const auto counts = host_.take_counts();
  EXPECT_EQ(counts.retries, 1U);
  EXPECT_EQ(counts.failed, 0U);
  EXPECT_EQ(counts.taken, 2U);
}

TEST_F(Outside, OneWhoseProgramSaysNothingIsLate) {
  options_.within = 10ms;
  begin(1);
  host_.take(master_->next());
  EXPECT_EQ(over(), std::nullopt);
  EXPECT_THAT(ends_.at(0).failure, HasSubstr("agents.timeout_s"));
  EXPECT_EQ(host_.take_counts().failed, 1U);
}

TEST_F(Outside, WhatNobodyHasTakenIsClosedAtTheEnd) {
  options_.concurrency = 2;
  begin(3);
  const auto first = master_->next();
  const auto second = master_->next();
  sessions_.reset();
  EXPECT_TRUE(master_->is_closed(first) && master_->is_closed(second));
  EXPECT_FALSE(host_.take(first));
  EXPECT_TRUE(ends_.empty());
}

} // namespace
} // namespace troupe::actors
