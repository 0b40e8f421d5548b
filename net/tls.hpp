// Mutual TLS 1.3 between the processes of one run: all show the run's one
// certificate and accept no other, so a stranger ends in the handshake, before
// any byte of its own is taken for a length. A session moves bytes over a
// connected socket and never waits; its caller does (asio, poll, CAF).
#pragma once

#include "net/defaults.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct ssl_ctx_st;
struct ssl_st;

namespace troupe::net {

/// A new key (P-256) and its certificate, which is its own authority, as PEM.
std::string make_run_certificate();

class TlsContext {
public:
  /// From a text with the blocks of `make_run_certificate`, whatever stands
  /// around them. Throws FailureError (bad_input) where they are not whole.
  explicit TlsContext(const std::string& pem);

  ssl_ctx_st* get() const noexcept {
    return context_.get();
  }

private:
  std::shared_ptr<ssl_ctx_st> context_;
};

/// One end of one connection. Not thread-safe; never raises SIGPIPE.
class TlsSession {
public:
  enum class Role : std::uint8_t { connects, accepts };
  /// What an attempt came to: bytes moved, or what to wait for.
  enum class Next : std::uint8_t {
    more,     ///< something moved (the handshake: it is over)
    readable, ///< nothing moved: try again when bytes came
    writable, ///< nothing moved: try again when there is room
    ended,    ///< the peer closed the connection
    broken,   ///< `why` says it
  };
  struct Moved {
    std::size_t bytes = 0;
    Next next = Next::more;
  };

  /// The socket stays its owner's and must outlive the session's use. One key
  /// encrypts `key_bytes` bytes, then comes another.
  TlsSession(const TlsContext& context, int socket, Role role,
             std::uint64_t key_bytes = kTlsKeyBytes);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Goes on with the handshake, which must be over before anything is written.
  Next shake_hands();
  Moved read(std::span<std::byte> into);
  /// Returns bytes that the kernel has; their records go to it many at a time.
  /// After `writable` the same bytes must come first in the next call.
  Moved write(std::span<const std::byte> from);

  /// Why it broke; empty until then.
  const std::string& why() const noexcept {
    return why_;
  }

private:
  friend struct TlsWire;
  Next outcome(int result);
  Next encrypt(std::span<const std::byte> from);
  Next send_records();

  ssl_st* ssl_;
  int socket_;
  std::uint64_t key_bytes_;
  int error_ = 0; ///< of the socket
  bool ended_ = false;
  std::uint64_t bytes_under_key_ = 0;
  bool gathering_ = false;         ///< records go to `records_`
  std::vector<std::byte> records_; ///< from `sent_` on not with the kernel yet
  std::size_t sent_ = 0;
  std::size_t encrypted_ = 0; ///< of the caller's bytes, in `records_`
  std::string why_;
};

} // namespace troupe::net
