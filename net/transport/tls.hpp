// Mutual TLS 1.3 between the processes of one run: all show the run's single
// certificate and accept no other, so other clients fail in the handshake,
// before any of their bytes is interpreted as a length. A session moves bytes
// over a connected socket and never waits; its caller does (asio, poll, CAF).
#pragma once

#include "net/base/defaults.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct ssl_ctx_st;
struct ssl_st;

namespace troupe::net {

/// Returns a new key (P-256) and its self-signed certificate, as PEM.
std::string make_run_certificate();
/// Returns the certificate alone, which is no secret.
std::string certificate_of(const std::string& pem);

/// Who may connect: those that show the same certificate, or anybody who
/// expects it. The latter show by other means who they are.
enum class TlsPeers : std::uint8_t { members, anybody };

class TlsContext {
public:
  /// Reads the blocks of `make_run_certificate` from a text with anything
  /// around them. Throws FailureError (bad_input) if they are incomplete.
  explicit TlsContext(const std::string& pem,
                      TlsPeers peers = TlsPeers::members);

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
  /// Result of an attempt: bytes moved, or what to wait for.
  enum class Next : std::uint8_t {
    more,     ///< something moved (handshake: complete)
    readable, ///< nothing moved: retry when readable
    writable, ///< nothing moved: retry when writable
    ended,    ///< the peer closed the connection
    broken,   ///< `why` has the reason
  };
  struct Moved {
    std::size_t bytes = 0;
    Next next = Next::more;
  };

  /// Creates a session on a socket, which stays its owner's and must outlive
  /// the session. After `key_bytes` bytes the key is updated.
  TlsSession(const TlsContext& context, int socket, Role role,
             std::uint64_t key_bytes = kTlsKeyBytes);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Continues the handshake, which must be complete before anything is
  /// written.
  Next shake_hands();
  Moved read(std::span<std::byte> into);
  /// Returns the number of bytes that the kernel has taken; records are passed
  /// to it many at a time. After `writable` the next call must start with the
  /// same bytes.
  Moved write(std::span<const std::byte> from);

  /// Returns why it broke; empty until then.
  const std::string& why() const noexcept {
    return why_;
  }
  /// Returns whether it broke with its socket, not by what TLS refuses.
  bool lost_socket() const noexcept {
    return error_ != 0;
  }

private:
  friend struct TlsWire;
  Next outcome(int result);
  Next encrypt(std::span<const std::byte> from);
  Next send_records();

  ssl_st* ssl_;
  int socket_;
  std::uint64_t key_bytes_;
  int error_ = 0; ///< errno of the socket
  bool ended_ = false;
  std::uint64_t bytes_under_key_ = 0;
  bool gathering_ = false;         ///< records go to `records_`
  std::vector<std::byte> records_; ///< from `sent_` on not yet with the kernel
  std::size_t sent_ = 0;
  std::size_t encrypted_ = 0; ///< bytes of the caller in `records_`
  std::string why_;
};

} // namespace troupe::net
