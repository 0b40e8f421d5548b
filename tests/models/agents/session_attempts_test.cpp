// Rules by which sessions are open to programs from outside.
#include "models/agents/session_attempts.hpp"

#include <gtest/gtest.h>

namespace troupe::models {
namespace {

using namespace std::chrono_literals;

constexpr SessionAttempts::Time at_first{};
constexpr AttemptLimits two_at_once{
  .concurrency = 2, .retries = 1, .within = 10s};
constexpr bool fails = true;

TEST(SessionAttempts, AsManyAreOpenAtOnceAsThereIsRoomFor) {
  SessionAttempts attempts(3, two_at_once);
  const auto first = attempts.open(at_first);
  ASSERT_EQ(first, (SessionAttempt{.task = 0, .number = 0}));
  EXPECT_EQ(attempts.open(at_first), (SessionAttempt{.task = 1, .number = 0}));
  EXPECT_EQ(attempts.open(at_first), std::nullopt);
  EXPECT_EQ(attempts.end(*first, !fails), AfterAttempt::done);
  EXPECT_EQ(attempts.open(at_first), (SessionAttempt{.task = 2, .number = 0}));
}

TEST(SessionAttempts, TheTimeOfOneCountsFromWhenItIsTaken) {
  SessionAttempts attempts(2, two_at_once);
  const auto first = *attempts.open(at_first);
  attempts.open(at_first);
  EXPECT_EQ(attempts.take(first, at_first + 60s), 60s);
  EXPECT_TRUE(attempts.late(at_first + 70s).empty());
  const auto late = attempts.late(at_first + 71s);
  ASSERT_EQ(late.size(), 1U) << "the other one was not taken";
  EXPECT_EQ(late[0], first);
}

TEST(SessionAttempts, OneProgramTakesASession) {
  SessionAttempts attempts(1, two_at_once);
  const auto first = *attempts.open(at_first);
  EXPECT_TRUE(attempts.taken().empty());
  EXPECT_TRUE(attempts.take(first, at_first));
  EXPECT_FALSE(attempts.take(first, at_first));
  ASSERT_EQ(attempts.taken().size(), 1U);
  EXPECT_EQ(attempts.taken()[0], first);
  attempts.end(first, !fails);
  EXPECT_FALSE(attempts.take(first, at_first));
}

TEST(SessionAttempts, AFailedOneComesAgainBeforeTheOthersAndThenFailsForGood) {
  SessionAttempts attempts(2, {.concurrency = 1, .retries = 1, .within = 1s});
  const auto first = *attempts.open(at_first);
  EXPECT_EQ(attempts.end(first, fails), AfterAttempt::again);
  const auto second = *attempts.open(at_first);
  EXPECT_EQ(second, (SessionAttempt{.task = 0, .number = 1}));
  EXPECT_EQ(attempts.end(first, !fails), AfterAttempt::nothing)
    << "its program was late";
  EXPECT_EQ(attempts.end(second, fails), AfterAttempt::done);
  EXPECT_FALSE(attempts.is_over());
  EXPECT_EQ(attempts.end(*attempts.open(at_first), !fails), AfterAttempt::done);
  EXPECT_TRUE(attempts.is_over());
}

TEST(SessionAttempts, NoneAreOverAtOnce) {
  EXPECT_TRUE(SessionAttempts(0, two_at_once).is_over());
}

} // namespace
} // namespace troupe::models
