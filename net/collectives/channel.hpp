// A channel between two neighbors that send each other messages in order:
// pipeline stages. A send copies its bytes and returns, so both may send at the
// same time; a receive waits. Both sides know the sizes. Each direction is a
// group of two over any transport, driven by one thread at a time: the
// receiver's thread, and on the sending side a thread of the channel. Names,
// deadlines and abort are those of the groups (I7). With a device, messages in
// its memory stay there: the copy too, and what the groups do with it.
#pragma once

#include "net/base/block_memory.hpp"
#include "net/collectives/collectives.hpp"

#include <cstddef>
#include <functional>
#include <memory>

namespace troupe::net {

/// The groups of a channel's directions: in `out` this side is rank 0 and the
/// peer rank 1, in `in` it is the other way round.
struct ChannelGroups {
  std::shared_ptr<Collectives> out;
  std::shared_ptr<Collectives> in;
};

/// A device whose memory the groups take beside the host's.
struct ChannelDevice {
  const BlockMemory* memory = nullptr; ///< null: there is none
  std::function<void()> enter;         ///< what a thread does before it uses it
};

class Channel {
public:
  /// Creates a channel, which owns both groups.
  explicit Channel(ChannelGroups groups, ChannelDevice device = {});
  /// Aborts what is still in flight.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Sends a message and returns once its bytes are copied; waits while too
  /// many messages are pending. Throws FailureError if the channel has failed.
  void send(const void* data, std::size_t bytes, const char* name);
  /// Returns once the peer's next message, of exactly this size, is in `data`:
  /// in the device's memory on both sides or on neither.
  void receive(void* data, std::size_t bytes, const char* name);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::net
