#include "runtime/launch/root_cause.hpp"

namespace troupe::runtime {

namespace {

/// Time after a broken connection in which its process' exit status arrives.
constexpr std::chrono::milliseconds explained_within{300};

} // namespace

void RootCause::connection_broke(const LostWorker& lost, Time now) {
  broken_.try_emplace(lost.worker, lost.failure, now + explained_within);
}

std::vector<LostWorker> RootCause::unexplained(Time now) const {
  std::vector<LostWorker> found;
  for (const auto& [worker, broken] : broken_)
    if (now > broken.second)
      found.push_back({worker, broken.first});
  return found;
}

void RootCause::add_death(const LostWorker& lost) {
  broken_.erase(lost.worker);
  if (!death_)
    death_ = lost;
}

/// Waits longer than for a connection, whose end then counts as a death.
void RootCause::hold(const actors::RunEnd& end, Time now) {
  held_.emplace(end, now + 2 * explained_within);
}

std::optional<actors::RunEnd> RootCause::unexplained_end(Time now) const {
  return held_ && now > held_->second ? std::optional(held_->first)
                                      : std::nullopt;
}

} // namespace troupe::runtime
