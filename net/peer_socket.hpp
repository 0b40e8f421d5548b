// A connected socket and, off loopback, the TLS session on it: bytes go at once
// or not at all, whoever owns it waits.
#pragma once

#include "net/descriptor.hpp"
#include "net/tls.hpp"

#include <cstddef>
#include <memory>
#include <stdexcept>

namespace troupe::net {

/// The connection is gone; the text says how.
class SocketLost : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

class PeerSocket {
public:
  PeerSocket() = default;
  /// `session`: nullptr in clear; otherwise its handshake is over.
  explicit PeerSocket(Descriptor socket,
                      std::unique_ptr<TlsSession> session = nullptr)
    : socket_(std::move(socket)),
      session_(std::move(session)) {}

  /// -1: none.
  int number() const noexcept {
    return socket_.get();
  }
  /// Bytes that went; 0: there is no room. Throws SocketLost.
  std::size_t send(const std::byte* data, std::size_t most);
  /// Bytes that came; 0: there are none. Throws SocketLost.
  std::size_t receive(std::byte* into, std::size_t most);

private:
  Descriptor socket_;
  std::unique_ptr<TlsSession> session_;
};

} // namespace troupe::net
