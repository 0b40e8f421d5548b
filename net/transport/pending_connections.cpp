#include "net/transport/pending_connections.hpp"

#include "net/base/defaults.hpp"

#include <utility>

namespace troupe::net {

PendingConnections::Entry&
PendingConnections::Entry::operator=(Entry&& other) noexcept {
  if (this != &other) {
    leave();
    pending_ = std::move(other.pending_);
    number_ = other.number_;
  }
  return *this;
}

PendingConnections::Entry::~Entry() {
  leave();
}

void PendingConnections::Entry::when_late(std::function<void()> close) {
  if (!pending_)
    return;
  if (const auto own = pending_->waiting_.find(number_);
      own != pending_->waiting_.end())
    own->second.close = std::move(close);
}

void PendingConnections::Entry::leave() {
  if (const auto pending = std::exchange(pending_, nullptr))
    pending->waiting_.erase(number_);
}

PendingConnections::Entry PendingConnections::add(Time now) {
  waiting_[next_] = {now, {}};
  return {shared_from_this(), next_++};
}

bool PendingConnections::full() const {
  return waiting_.size() >= kMaxUngreeted;
}

void PendingConnections::close_late(Time now) {
  while (!waiting_.empty()
         && now - waiting_.begin()->second.since >= kGreetWithin)
    close_first();
}

bool PendingConnections::make_room(Time now) {
  close_late(now);
  if (full() && now - waiting_.begin()->second.since >= kYieldAfter)
    close_first();
  return !full();
}

/// Frees the place first: closing ends its holder.
void PendingConnections::close_first() {
  const auto close = std::move(waiting_.begin()->second.close);
  waiting_.erase(waiting_.begin());
  if (close)
    close();
}

} // namespace troupe::net
