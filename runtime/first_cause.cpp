#include "runtime/first_cause.hpp"

namespace troupe::runtime {

namespace {

/// After a connection broke, its process' exit status comes in this time.
constexpr std::chrono::milliseconds explained_within{300};

} // namespace

void FirstCause::connection_broke(const LostWorker& lost, Time now) {
  broken_.try_emplace(lost.worker, lost.failure, now + explained_within);
}

std::vector<LostWorker> FirstCause::unexplained(Time now) const {
  std::vector<LostWorker> found;
  for (const auto& [worker, broken] : broken_)
    if (now > broken.second)
      found.push_back({worker, broken.first});
  return found;
}

void FirstCause::add_death(const LostWorker& lost) {
  broken_.erase(lost.worker);
  if (!death_)
    death_ = lost;
}

/// Longer than for a connection, whose end is then a death by itself.
void FirstCause::hold(const actors::RunEnd& end, Time now) {
  held_.emplace(end, now + 2 * explained_within);
}

std::optional<actors::RunEnd> FirstCause::unexplained_end(Time now) const {
  return held_ && now > held_->second ? std::optional(held_->first)
                                      : std::nullopt;
}

} // namespace troupe::runtime
