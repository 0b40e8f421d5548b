// One TCP connection that speaks frames, in clear or over TLS: writes headers
// and payload pieces in one scatter-gather call, one frame at a time, reads
// payloads straight to where its handler says, and closes when nothing moves
// within the deadline although something should. Frames like earlier ones
// allocate nothing in clear. Everything runs on the I/O thread.
#pragma once

#include "config/awake_clock.hpp"
#include "net/buffer.hpp"
#include "net/peer_socket.hpp"
#include "net/tls_stream.hpp"
#include "net/wire.hpp"

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

/// Places of a payload; their sizes add up to the payload's.
using ReadTargets = std::vector<boost::asio::mutable_buffer>;
/// Runs of a buffer, as part of a payload.
struct PayloadPart {
  Buffer memory;
  MemoryRuns runs;
};

/// What a connection's owner does with frames.
class ConnectionHandler {
public:
  virtual ~ConnectionHandler() = default;
  /// A header arrived: its payload goes to what is appended to `targets`.
  /// Throws WireError to close.
  virtual void on_header(const Message& message, std::uint64_t payload_bytes,
                         ReadTargets& targets)
    = 0;
  /// The payload of the last header is there. False: read no further frame
  /// until `resume_reading`.
  virtual bool on_frame(const Message& message) = 0;
  /// A frame was written; the next one may be sent.
  virtual void on_written() = 0;
  /// Does the handler wait for the peer? Then silence is a failure.
  virtual bool expects_frames() const = 0;
  /// Last call; `failure` says why.
  virtual void on_closed(const Failure& failure) = 0;
};

class Connection : public std::enable_shared_from_this<Connection> {
public:
  using Socket = boost::asio::ip::tcp::socket;

  /// `peer` is for messages: "worker 1 (127.0.0.1:4711)".
  Connection(Socket socket, std::string peer,
             std::chrono::milliseconds progress_deadline);

  /// Before `start`: nothing goes in clear, and no frame before the handshake.
  void secure(const TlsContext& context, TlsSession::Role role);
  /// Starts reading frames up to `limits`; `handler` is held until the end.
  void start(std::shared_ptr<ConnectionHandler> handler,
             const FrameLimits& limits);
  void set_limits(const FrameLimits& limits) {
    limits_ = limits;
  }
  /// Only while no frame is on its way.
  void send(const Message& message, std::span<const PayloadPart> payload = {});
  void resume_reading();
  /// Call when the handler begins to expect frames.
  void watch_progress();
  /// Closes when the frame on its way is written.
  void close_after_writing(Failure failure);
  void close(const Failure& failure);
  /// Gives the socket away (call inside on_written with nothing in flight);
  /// none if that fails.
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
    std::vector<Buffer> payload;                   ///< holds its memory
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
  void fail(const ErrorCode& error, const char* doing);
  void arm_timer();
  bool moving_expected() const;
  /// Asio asks this before each system call: how many bytes at most?
  auto transfer_in_big_parts();
  template <class Body>
  void guarded(Body&& body);

  std::pmr::unsynchronized_pool_resource memory_; ///< of asio's operations
  Socket socket_;
  std::unique_ptr<TlsStream> tls_; ///< nullptr: in clear
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
  ReadTargets targets_; ///< of what is being read
  OutgoingFrame frame_; ///< on its way, or none
  std::uint64_t bytes_sent_ = 0;
  Failure close_reason_; ///< of close_after_writing
  bool close_when_written_ = false;
  bool greeting_ = false; ///< in the handshake
  bool writing_ = false;
  bool reading_ = false;   ///< a frame is wanted from the socket
  bool mid_frame_ = false; ///< a frame has begun to arrive
  bool timer_armed_ = false;
  bool closed_ = false;
};

} // namespace troupe::net
