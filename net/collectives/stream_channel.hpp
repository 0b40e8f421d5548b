// A channel's messages as work of a device's streams: a send goes beside the
// thread's kernels, a receive between them, and the host waits for neither. The
// sender writes a message into memory of the channel, so it may go on with its
// own; the peer may send at the same time, as each direction has a group. A
// watchdog of each group keeps names, deadlines and aborts (I7), and both ends
// compare digests of their calls when they meet (stream_collectives.hpp).
//
// At most kMaxStreamMessages of a direction are on their way: then the thread's
// stream, not the host, waits until the peer's stream has received the first.
// So a side may send that many more than it receives.
#pragma once

#include "net/base/block_memory.hpp"
#include "net/base/defaults.hpp"
#include "net/base/page_block.hpp"
#include "net/collectives/stream_collectives.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace troupe::net {

class Collectives;

/// The groups of a channel's directions: in `out` this side is rank 0 and the
/// peer rank 1, in `in` it is the other way round.
struct ChannelGroups {
  std::shared_ptr<Collectives> out;
  std::shared_ptr<Collectives> in;
  std::uint32_t end = 0; ///< 0 or 1: the peer has the other
};

class StreamChannel {
public:
  /// Uses groups that carry nothing else; messages are copied in `memory`
  /// (null: the host's).
  StreamChannel(ChannelGroups groups, const BlockMemory* memory);

  /// Returns whether the groups have streams for memory like `data`. The first
  /// time both ends agree and connect, which waits for the peer to ask too.
  bool connect(const void* data);

  // These throw FailureError if a group has failed. Once it has connected:

  /// Returns memory for the next message, which kernels from here on may write.
  void* next_message(std::size_t size_bytes);
  /// Sends that message, after the thread's kernels so far.
  void send(const char* name);
  /// Receives the peer's next message, of exactly this size, into memory of the
  /// device, for the kernels from here on.
  void receive(void* data, std::size_t size_bytes, const char* name);

  // At any time:

  /// Throws the failure of a group, without a meeting: messages that an abort
  /// ended have wrong numbers.
  void check();
  /// Meets the peer, if they have connected, and throws unless both have made
  /// the same calls.
  void compare();

private:
  struct Message {
    PageBlock block;
    std::size_t size_bytes = 0;
    StreamTicket sent;
  };

  const BlockMemory* memory_;
  std::array<Message, kMaxStreamMessages> messages_; ///< outlive the groups
  std::size_t next_ = 0;
  ChannelGroups groups_;
  std::optional<bool> has_streams_; ///< once it has been asked
  StreamCollectives* out_ = nullptr;
  StreamCollectives* in_ = nullptr;
};

} // namespace troupe::net
