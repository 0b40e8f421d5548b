#include "models/agents/session_attempts.hpp"

namespace troupe::models {

SessionAttempts::SessionAttempts(std::size_t num_sessions, AttemptLimits limits)
  : limits_(limits) {
  for (std::size_t i = 0; i < num_sessions; ++i)
    waiting_.push_back({.task = i});
}

std::optional<SessionAttempt> SessionAttempts::open(Time now) {
  if (waiting_.empty() || open_.size() >= limits_.concurrency)
    return std::nullopt;
  const auto attempt = waiting_.front();
  waiting_.pop_front();
  open_[attempt.task] = {.number = attempt.number, .since = now, .by = {}};
  return attempt;
}

SessionAttempts::Open* SessionAttempts::find(SessionAttempt attempt) {
  const auto found = open_.find(attempt.task);
  return found != open_.end() && found->second.number == attempt.number
           ? &found->second
           : nullptr;
}

std::optional<AwakeClock::duration>
SessionAttempts::take(SessionAttempt attempt, Time now) {
  auto* open = find(attempt);
  if (open == nullptr || open->by)
    return std::nullopt;
  open->by = now + limits_.within;
  return now - open->since;
}

AfterAttempt SessionAttempts::end(SessionAttempt attempt, bool failed) {
  if (find(attempt) == nullptr)
    return AfterAttempt::nothing;
  open_.erase(attempt.task);
  if (!failed || attempt.number >= limits_.retries)
    return AfterAttempt::done;
  waiting_.push_front({.task = attempt.task, .number = attempt.number + 1});
  return AfterAttempt::again;
}

std::vector<SessionAttempt> SessionAttempts::late(Time now) const {
  std::vector<SessionAttempt> late;
  for (const auto& [task, open] : open_)
    if (open.by && now > *open.by)
      late.push_back({.task = task, .number = open.number});
  return late;
}

std::vector<SessionAttempt> SessionAttempts::taken() const {
  std::vector<SessionAttempt> taken;
  for (const auto& [task, open] : open_)
    if (open.by)
      taken.push_back({.task = task, .number = open.number});
  return taken;
}

} // namespace troupe::models
