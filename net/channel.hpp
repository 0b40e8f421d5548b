// A pair of neighbours that send each other messages in order: pipeline stages.
// A send copies its bytes and returns, so two neighbours may send to each other
// at the same time; a receive waits. Both know the sizes. Each direction is a
// group of two over any transport, driven by one thread at a time: the
// receiver's own, and on the sending side a thread of the channel's. Names,
// deadlines and abort are those of the groups (I7).
#pragma once

#include "net/collectives.hpp"

#include <cstddef>
#include <memory>

namespace troupe::net {

class Channel {
public:
  /// In `out` this side is rank 0 and the peer rank 1, in `in` it is the other
  /// way round. Both belong to the channel alone.
  Channel(std::shared_ptr<Collectives> out, std::shared_ptr<Collectives> in);
  /// Aborts what is still on its way.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Returns when the bytes are copied; waits while too many messages are
  /// pending. Throws FailureError when the channel broke before.
  void send(const void* data, std::size_t bytes, const char* name);
  /// Returns when the peer's next message, of exactly this size, is in `data`.
  void receive(void* data, std::size_t bytes, const char* name);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::net
