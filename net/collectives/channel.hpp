// A channel between two neighbors that send each other messages in order:
// pipeline stages. A send copies its bytes and returns, so both may send at the
// same time; a receive waits. Both sides know the sizes. Each direction is a
// group of two over any transport, driven by one thread at a time: the
// receiver's thread, and on the sending side a thread of the channel. Names,
// deadlines and abort are those of the groups (I7). Messages may be in a
// device's memory; where a second pair of groups has streams, these are work of
// the device (stream_channel.hpp), in an order of their own.
#pragma once

#include "net/base/block_memory.hpp"
#include "net/collectives/collectives.hpp"
#include "net/collectives/stream_channel.hpp"

#include <cstddef>
#include <functional>
#include <memory>

namespace troupe::net {

/// A device whose memory the groups take beside the host's.
struct ChannelDevice {
  const BlockMemory* memory = nullptr; ///< null: there is none
  std::function<void()> enter;         ///< what a thread does before it uses it
  /// Groups of the same ends for messages as work of streams; null: none.
  ChannelGroups streams = {};
};

class Channel {
public:
  /// Creates a channel, which owns its groups.
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

  /// Returns the channel's messages in the order of a device's streams, for
  /// memory like `data`; null: it has none. Both ends ask alike: the first time
  /// they agree, and connect.
  StreamChannel* on_streams(const void* data);
  /// Throws the failure of messages on streams, for which nobody waits.
  void check();
  /// Meets the peer, if messages were on streams, and throws unless both have
  /// made the same calls.
  void compare();

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::net
