// Sockets of a chain: dial a peer's data plane with the token, and move bytes
// on several of them at once with poll, until done, aborted, or nothing moved
// within the deadline. Only the member's thread runs this code; abort() reaches
// it through an eventfd.
#pragma once

#include "config/base/error.hpp"
#include "config/base/ids.hpp"
#include "net/transport/peer_socket.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::net {

/// One direction of one socket. `done` counts bytes; a sending lane may proceed
/// up to *available, a receiving one up to `end`.
struct Lane {
  PeerSocket* socket = nullptr;
  std::string peer; ///< for messages
  bool sending = false;
  std::byte* data = nullptr;
  std::size_t end = 0;
  const std::size_t* available = nullptr; ///< sending only
  std::size_t done = 0;
  /// Receiving: returns address and size for the next bytes (default: data +
  /// done).
  std::function<std::pair<std::byte*, std::size_t>()> next;
  /// Called with the number of bytes just received.
  std::function<void(std::size_t)> received;
};

struct LaneWaits {
  int abort_event = -1; ///< readable: stop; -1: none
  std::chrono::milliseconds progress_deadline{};
};

/// Runs all lanes to their ends. Throws FailureError: peer_lost, deadline, or
/// aborted if the event fired.
void run_lanes(std::vector<Lane*> lanes, const LaneWaits& waits);

/// Returns the session on a socket just connected to `peer`, after its
/// handshake. Throws FailureError: refused, deadline, aborted.
std::unique_ptr<TlsSession> secure_dialed(int socket, const TlsContext& context,
                                          const std::string& peer,
                                          const LaneWaits& waits);

struct GroupDial {
  std::string host;
  std::uint16_t port = 0;
  std::string token;
  WorkerId self;
  std::string group;
  std::uint32_t rank = 0;                ///< this member's
  std::string peer;                      ///< for messages
  std::shared_ptr<const TlsContext> tls; ///< nullptr: plaintext
};
/// Returns a connected socket whose other end goes to the peer's registry.
/// Throws FailureError.
PeerSocket dial_group(const GroupDial& dial, const LaneWaits& waits);

} // namespace troupe::net
