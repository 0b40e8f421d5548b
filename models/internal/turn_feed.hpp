// The turns of a conversation as every device that generates it sees them: the
// first one takes them from the queue and tells its tensor peers and the stage
// behind it, in front of what it computes for them. So all devices admit the
// same turns before the same pass.
#pragma once

#include "models/run_context.hpp"
#include "models/turns.hpp"

namespace troupe::models::internal {

class TurnFeed {
public:
  /// No turns but those that are known from the start.
  TurnFeed() = default;
  /// `queue` is that of the first device; null on the others.
  TurnFeed(TurnQueue* queue, const Groups& groups);

  /// Whether more turns may come.
  bool open() const {
    return open_;
  }
  /// What has come since; where `idle`, the first device waits a while.
  std::vector<Turn> take(bool idle);

private:
  bool is_first() const;
  /// The intake in words, alike on all devices afterwards.
  void share(std::vector<std::int32_t>& words) const;

  TurnQueue* queue_ = nullptr;
  const Groups* groups_ = nullptr;
  bool open_ = false;
};

} // namespace troupe::models::internal
