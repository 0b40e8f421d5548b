// Rules by which sessions are open to programs from outside.
#include "models/agents/session_attempts.hpp"

#include <gtest/gtest.h>

namespace troupe::models {
namespace {

using namespace std::chrono_literals;

constexpr SessionAttempts::Time begin{};
constexpr AttemptLimits limits{.concurrency = 2, .retries = 1, .within = 10s};
constexpr bool failed = true;

TEST(SessionAttempts, AsManyAreOpenAtOnceAsThereIsRoomFor) {
  SessionAttempts attempts(3, limits);
  const auto first = attempts.open(begin);
  ASSERT_EQ(first, (SessionAttempt{.task = 0, .number = 0}));
  EXPECT_EQ(attempts.open(begin), (SessionAttempt{.task = 1, .number = 0}));
  EXPECT_EQ(attempts.open(begin), std::nullopt);
  EXPECT_EQ(attempts.end(*first, !failed), AfterAttempt::done);
  EXPECT_EQ(attempts.open(begin), (SessionAttempt{.task = 2, .number = 0}));
}

TEST(SessionAttempts, TheTimeOfOneCountsFromWhenItIsTaken) {
  SessionAttempts attempts(2, limits);
  const auto first = *attempts.open(begin);
  attempts.open(begin);
  EXPECT_EQ(attempts.take(first, begin + 60s), 60s);
  EXPECT_TRUE(attempts.late(begin + 70s).empty());
  const auto late = attempts.late(begin + 71s);
  ASSERT_EQ(late.size(), 1U) << "the other one was not taken";
  EXPECT_EQ(late[0], first);
}

TEST(SessionAttempts, OneProgramTakesASession) {
  SessionAttempts attempts(1, limits);
  const auto first = *attempts.open(begin);
  EXPECT_TRUE(attempts.taken().empty());
  EXPECT_TRUE(attempts.take(first, begin));
  EXPECT_FALSE(attempts.take(first, begin));
  ASSERT_EQ(attempts.taken().size(), 1U);
  EXPECT_EQ(attempts.taken()[0], first);
  attempts.end(first, !failed);
  EXPECT_FALSE(attempts.take(first, begin));
}

TEST(SessionAttempts, AFailedOneComesAgainBeforeTheOthersAndThenFailsForGood) {
  SessionAttempts attempts(2, {.concurrency = 1, .retries = 1, .within = 1s});
  const auto first = *attempts.open(begin);
  EXPECT_EQ(attempts.end(first, failed), AfterAttempt::again);
  const auto second = *attempts.open(begin);
  EXPECT_EQ(second, (SessionAttempt{.task = 0, .number = 1}));
  EXPECT_EQ(attempts.end(first, !failed), AfterAttempt::nothing)
    << "its program was late";
  EXPECT_EQ(attempts.end(second, failed), AfterAttempt::done);
  EXPECT_FALSE(attempts.is_over());
  EXPECT_EQ(attempts.end(*attempts.open(begin), !failed), AfterAttempt::done);
  EXPECT_TRUE(attempts.is_over());
}

TEST(SessionAttempts, NoneAreOverAtOnce) {
  EXPECT_TRUE(SessionAttempts(0, limits).is_over());
}

} // namespace
} // namespace troupe::models
