// Which sessions of a call are open to programs from outside, and for how long:
// attempts wait, are opened as long as there is room, are taken by a program,
// and end in time or are late; one that failed is queued again. Pure: times are
// arguments. The time limit of an attempt counts from when it is taken.
#pragma once

#include "config/base/awake_clock.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace troupe::models {

/// One attempt at a session.
struct SessionAttempt {
  std::size_t task = 0;     ///< index of the session
  std::uint32_t number = 0; ///< 0: the first
  bool operator==(const SessionAttempt&) const = default;
};

struct AttemptLimits {
  std::uint32_t concurrency = 1;  ///< sessions open at once
  std::uint32_t retries = 0;      ///< attempts after the first
  AwakeClock::duration within{0}; ///< of one attempt, once it is taken
};

/// Consequence of the end of an attempt.
enum class AfterAttempt : std::uint8_t {
  nothing, ///< it had ended already
  again,   ///< the session is queued again
  done,    ///< the session has ended
};

class SessionAttempts {
public:
  using Time = AwakeClock::time_point;

  SessionAttempts(std::size_t num_sessions, AttemptLimits limits);

  /// Opens the next attempt; nothing: none waits, or there is no room.
  std::optional<SessionAttempt> open(Time now);
  /// Hands an attempt to a program. Returns how long it was open; nothing: it
  /// was taken before, or has ended.
  std::optional<AwakeClock::duration> take(SessionAttempt attempt, Time now);
  /// Ends an attempt.
  AfterAttempt end(SessionAttempt attempt, bool failed);
  /// Returns the attempts whose time is over.
  std::vector<SessionAttempt> late(Time now) const;
  /// Returns the attempts that programs have.
  std::vector<SessionAttempt> taken() const;
  /// Returns true once all sessions have ended.
  bool is_over() const {
    return waiting_.empty() && open_.empty();
  }

private:
  struct Open {
    std::uint32_t number = 0;
    Time since;             ///< of being open
    std::optional<Time> by; ///< when it has to end; nothing: it is not taken
  };
  Open* find(SessionAttempt attempt);

  const AttemptLimits limits_;
  std::deque<SessionAttempt> waiting_;
  std::map<std::size_t, Open> open_; ///< by task
};

} // namespace troupe::models
