// Distributes the turns of a conversation to all devices that generate it: the
// first one takes them from the queue and sends them to its tensor peers and
// the next stage, ahead of the data of its passes. So all devices admit the
// same turns before the same pass, whichever model speaks in them.
#pragma once

#include "models/generate/turns.hpp"
#include "models/parallel/run_context.hpp"

namespace troupe::models::internal {

class TurnFeed {
public:
  /// A closed feed: only the turns known from the start.
  TurnFeed() = default;
  /// Takes the first device's `queue`; null on the others.
  TurnFeed(TurnQueue* queue, const Groups& groups);

  /// Returns true if more turns may arrive.
  bool open() const {
    return open_;
  }
  /// Returns the turns that arrived since; if `idle`, the first device waits
  /// for a while.
  std::vector<Turn> take(bool idle);

private:
  bool is_first() const;
  /// Shares the intake as words; equal on all devices afterwards.
  void share(std::vector<std::int32_t>& words) const;

  TurnQueue* queue_ = nullptr;
  const Groups* groups_ = nullptr;
  bool open_ = false;
};

} // namespace troupe::models::internal
