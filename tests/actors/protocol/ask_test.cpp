// The call table in a scheduler that the test drives: every ask ends once.
#include "actors/protocol/open_replies.hpp"

#include <c10/util/Exception.h>

#include "tests/support/actors/driven_actors.hpp"
#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using Server
  = caf::typed_actor<handles<next_atom, NextOrder, DataBatch>, job_done>;

struct ServerState {
  std::string name = "server";
  std::vector<Reply<DataBatch>> open;
};
struct Received {
  int values = 0;
  int failures = 0;
  Failure failure;
};

constexpr std::uint64_t with_a_value = 0;
constexpr std::uint64_t with_a_failure = 1;

/// Keeps the reply open until the test decides how it ends; delivers in its own
/// handler, as all our actors must.
Server::behavior_type server_actor(Self<Server, ServerState> self) {
  return {
    [=](next_atom, const Context& context, const NextOrder&) {
      self->state.open.emplace_back(self, context);
      return self->state.open.back().promise();
    },
    [=](done_atom, std::uint64_t how) {
      if (how == with_a_value)
        self->state.open.front().deliver({});
      else
        self->state.open.front().fail({Errc::io, "disk", "full", "quota"});
    },
  };
}

class Ask : public DrivenActors {
protected:
  Ask() {
    tell(client_, start_atom::value);
  }

  void reply(std::uint64_t how) {
    tell(server_, done_atom::value, how);
  }
  void ask_for_rows(ClientSelf self) {
    ask<DataBatch>(
      self, server_, next_atom::value, Context{}, NextOrder{},
      {.name = "rows",
       .worker = WorkerId{1},
       .deadline = std::chrono::milliseconds{50}},
      [this](DataBatch&) { ++outcome_.values; },
      [this](const Failure& failure) {
        ++outcome_.failures;
        outcome_.failure = failure;
      });
  }

  Received outcome_;
  Server server_ = spawn(server_actor);
  Client client_
    = spawn(client_actor, asks_, [this](auto self) { ask_for_rows(self); });
};

TEST_F(Ask, AValueCompletesIt) {
  reply(with_a_value);
  EXPECT_EQ(outcome_.values, 1);
  EXPECT_THAT(asks_->waits(AskTable::Clock::now()), ::testing::IsEmpty());
}

TEST_F(Ask, AFailureKeepsItsRootCause) {
  reply(with_a_failure);
  EXPECT_EQ(outcome_.failure.code, Errc::io);
  EXPECT_EQ(outcome_.failure.who, "disk");
  EXPECT_EQ(outcome_.failure.cause, "quota");
}

TEST_F(Ask, AFailedRunFailsItOnceAndALateValueIsIgnored) {
  asks_->fail_all({Errc::peer_lost, "worker 1", "gone", ""});
  run();
  reply(with_a_value);
  EXPECT_EQ(outcome_.failures, 1);
  EXPECT_EQ(outcome_.failure.who, "worker 1");
  EXPECT_EQ(outcome_.values, 0);
}

TEST_F(Ask, AnUndeliverableMessageNamesTheWait_I7) {
  kill(server_.address());
  tell(client_, start_atom::value);
  ASSERT_EQ(outcome_.failures, 1);
  EXPECT_EQ(outcome_.failure.who, "rows");
  EXPECT_THAT(outcome_.failure.what, ::testing::HasSubstr("not delivered"));
}

TEST_F(Ask, EveryWaitHasANameAndADeadline_I7) {
  const auto now = AskTable::Clock::now();
  ASSERT_THAT(asks_->waits(now), ::testing::SizeIs(1));
  EXPECT_EQ(asks_->waits(now)[0].name, "rows");
  asks_->expire(now + std::chrono::seconds{1});
  run();
  EXPECT_EQ(outcome_.failure.code, Errc::deadline);
}

TEST_F(Ask, ADeathNamesTheOpenWaitOrTheLastOne) {
  EXPECT_EQ(asks_->work_of(WorkerId{1}), " during rows");
  EXPECT_EQ(asks_->work_of(WorkerId{2}), " during rows"); // of another ask
  reply(with_a_value);
  EXPECT_EQ(asks_->work_of(WorkerId{1}), " after rows");
  EXPECT_EQ(asks_->work_of(WorkerId{2}), "");
}

TEST_F(Ask, AHeartbeatIsNotReportedAsWork) {
  asks_->add(
    77, {},
    {.name = "heartbeat of worker 1", .worker = WorkerId{1}, .is_work = false});
  EXPECT_EQ(asks_->work_of(WorkerId{1}), " during rows");
}

TEST_F(Ask, ADeathThatEndedARunNamesTheWaitOpenAtThatTime) {
  asks_->fail_all({Errc::peer_lost, "worker 1", "gone", ""});
  run();
  EXPECT_EQ(asks_->work_of(WorkerId{1}), " during rows");
}

TEST_F(Ask, AClosedTableFailsNewAsksAtOnce) {
  asks_->fail_all({Errc::aborted, "run", "over", ""});
  tell(client_, start_atom::value);
  EXPECT_EQ(outcome_.failures, 2);
}

TEST(Failures, AnOperationWithoutMemoryIsNoBug) {
  try {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory");
  } catch (const std::exception& error) {
    const auto failure = to_failure(error, "device 3");
    EXPECT_EQ(failure.code, Errc::out_of_memory);
    EXPECT_EQ(failure.who, "device 3");
    EXPECT_THAT(failure.what, ::testing::StartsWith("CUDA out of memory"));
    EXPECT_THAT(failure.what, ::testing::Not(::testing::HasSubstr("frame #")));
  }
}

} // namespace
} // namespace troupe::actors
