// A channel between two neighbors that send each other messages in order:
// pipeline stages. A send copies its bytes and returns, so both may send at the
// same time; a receive waits. Both sides know the sizes. Each direction is a
// group of two over any transport, driven by one thread at a time: the
// receiver's thread, and on the sending side a thread of the channel. Names,
// deadlines and abort are those of the groups (I7).
#pragma once

#include "net/collectives/collectives.hpp"

#include <cstddef>
#include <memory>

namespace troupe::net {

class Channel {
public:
  /// Creates a channel, which owns both groups: in `out` this side is rank 0
  /// and the peer rank 1, in `in` it is the other way round.
  Channel(std::shared_ptr<Collectives> out, std::shared_ptr<Collectives> in);
  /// Aborts what is still in flight.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Sends a message and returns once its bytes are copied; waits while too
  /// many messages are pending. Throws FailureError if the channel has failed.
  void send(const void* data, std::size_t bytes, const char* name);
  /// Returns once the peer's next message, of exactly this size, is in `data`.
  void receive(void* data, std::size_t bytes, const char* name);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::net
