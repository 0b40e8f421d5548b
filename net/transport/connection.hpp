// One TCP connection that carries frames, in plaintext or over TLS: it writes
// headers and payload pieces in one scatter-gather call, one frame at a time,
// reads payloads directly to where its handler specifies, and closes if nothing
// moves within the deadline although something should. In plaintext, frames no
// larger than earlier ones allocate nothing. Everything runs on the I/O thread.
#pragma once

#include "config/base/awake_clock.hpp"
#include "net/base/buffer.hpp"
#include "net/base/wire.hpp"
#include "net/transport/peer_socket.hpp"
#include "net/transport/tls_stream.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

namespace troupe::net {

/// Destinations of a payload; their sizes add up to the payload's.
using ReadTargets = std::vector<boost::asio::mutable_buffer>;
/// Runs of a buffer, as part of a payload.
struct PayloadPart {
  Buffer memory;
  MemoryRuns runs;
};

/// Callbacks of a connection's owner.
class ConnectionHandler {
public:
  virtual ~ConnectionHandler() = default;
  /// Handles a header by appending the destinations of its payload to
  /// `targets`. Throws WireError to close.
  virtual void on_header(const Message& message, std::uint64_t payload_bytes,
                         ReadTargets& targets)
    = 0;
  /// Handles the complete payload of the last header. Returns false to read no
  /// further frame until `resume_reading`.
  virtual bool on_frame(const Message& message) = 0;
  /// Called when a frame was written; the next one may be sent.
  virtual void on_written() = 0;
  /// Returns true if the handler waits for the peer, so that silence is a
  /// failure.
  virtual bool expects_frames() const = 0;
  /// Last call, with the reason in `failure`.
  virtual void on_closed(const Failure& failure) = 0;
};

class Connection : public std::enable_shared_from_this<Connection> {
public:
  using Socket = boost::asio::ip::tcp::socket;

  /// Takes the socket; `peer` is for messages: "worker 1 (127.0.0.1:4711)".
  Connection(Socket socket, std::string peer,
             std::chrono::milliseconds progress_deadline);

  /// Enables TLS before `start`: nothing is sent in plaintext, and no frame
  /// before the handshake.
  void secure(const TlsContext& context, TlsSession::Role role);
  /// Starts reading frames up to `limits`; `handler` is held until the end.
  void start(std::shared_ptr<ConnectionHandler> handler,
             const FrameLimits& limits);
  void set_limits(const FrameLimits& limits) {
    limits_ = limits;
  }
  /// Sends a frame; only while none is in flight.
  void send(const Message& message, std::span<const PayloadPart> payload = {});
  void resume_reading();
  /// Starts the deadline when the handler begins to expect frames.
  void watch_progress();
  /// Closes once the frame in flight is written.
  void close_after_writing(Failure failure);
  void close(const Failure& failure);
  /// Releases the socket (from on_written with nothing in flight); an empty one
  /// if that fails.
  PeerSocket release();

  bool can_send() const noexcept {
    return frame_.head.empty();
  }
  const std::string& peer() const noexcept {
    return peer_;
  }
  std::uint64_t bytes_sent() const noexcept {
    return bytes_sent_;
  }

private:
  struct OutgoingFrame {
    std::string head;
    std::vector<boost::asio::const_buffer> pieces; ///< head and payload
    std::vector<Buffer> payload;                   ///< keeps its memory alive
    void clear();
  };
  using ErrorCode = boost::system::error_code;

  template <class Body>
  auto in_own_memory(Body body);
  void shake_hands();
  template <class Operation>
  void through_stream(Operation&& operation);
  template <class Body>
  void read_all(std::span<const boost::asio::mutable_buffer> places, Body body);
  void read_prelude();
  void read_header();
  void read_payload();
  void frame_done();
  void write_frame();
  void frame_written(const ErrorCode& error, std::size_t bytes);
  Errc code_of_broken_tls() const;
  void fail(const ErrorCode& error, const char* doing);
  void arm_timer();
  bool moving_expected() const;
  /// Returns the completion condition that asio calls before each system call
  /// for its largest size.
  auto transfer_in_big_parts();
  template <class Body>
  void guarded(Body&& body);

  std::pmr::unsynchronized_pool_resource memory_; ///< for asio's operations
  Socket socket_;
  std::unique_ptr<TlsStream> tls_; ///< nullptr: plaintext
  boost::asio::steady_timer timer_;
  std::string peer_;
  std::chrono::milliseconds deadline_;
  AwakeClock::time_point last_progress_;
  std::shared_ptr<ConnectionHandler> handler_;
  FrameLimits limits_;
  std::array<std::byte, kPreludeBytes> prelude_bytes_{};
  Prelude prelude_;
  std::vector<std::byte> header_;
  Message message_;
  ReadTargets targets_; ///< for the payload being read
  OutgoingFrame frame_; ///< in flight, or empty
  std::uint64_t bytes_sent_ = 0;
  Failure close_reason_; ///< for close_after_writing
  bool close_when_written_ = false;
  /// The stages of meeting the peer; it is known once a whole frame has come.
  enum class Stage : std::uint8_t { unknown, greeting, greeted, known };
  Stage stage_ = Stage::unknown;
  bool writing_ = false;
  bool reading_ = false;   ///< a frame is expected from the socket
  bool mid_frame_ = false; ///< a frame has partly arrived
  bool timer_armed_ = false;
  bool closed_ = false;
};

} // namespace troupe::net
