#include "models/agents/open_sessions.hpp"

#include <utility>

namespace troupe::models {

void OpenSessions::open(const std::string& key, WorkerId worker, bool waits) {
  workers_[key] = worker;
  if (waits)
    waiting_.push_back(key);
}

void OpenSessions::close(const std::string& key) {
  workers_.erase(key);
  std::erase(waiting_, key);
}

std::optional<WorkerId> OpenSessions::worker_of(const std::string& key) const {
  const auto found = workers_.find(key);
  return found == workers_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> OpenSessions::take() {
  if (waiting_.empty())
    return std::nullopt;
  auto key = std::move(waiting_.front());
  waiting_.pop_front();
  return key;
}

} // namespace troupe::models
