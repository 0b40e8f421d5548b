// A connected socket and, off loopback, the TLS session on it: calls transfer
// bytes immediately or not at all; the owner does the waiting.
#pragma once

#include "net/base/descriptor.hpp"
#include "net/transport/tls.hpp"

#include <cstddef>
#include <memory>
#include <stdexcept>

namespace troupe::net {

/// The connection is lost; what() has the reason.
class SocketLost : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

class PeerSocket {
public:
  PeerSocket() = default;
  /// Takes a socket; `session` is nullptr for plaintext, otherwise its
  /// handshake is complete.
  explicit PeerSocket(Descriptor socket,
                      std::unique_ptr<TlsSession> session = nullptr)
    : socket_(std::move(socket)),
      session_(std::move(session)) {}

  /// Returns the descriptor; -1: none.
  int number() const noexcept {
    return socket_.get();
  }
  /// Returns the number of bytes sent; 0: no room. Throws SocketLost.
  std::size_t send(const std::byte* data, std::size_t most);
  /// Returns the number of bytes received; 0: none available. Throws
  /// SocketLost.
  std::size_t receive(std::byte* into, std::size_t most);

private:
  Descriptor socket_;
  std::unique_ptr<TlsSession> session_;
};

} // namespace troupe::net
