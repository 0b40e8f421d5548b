// A TLS session as a stream for asio's composed reads and writes: it tries,
// waits for the socket if nothing moves, and tries again. Pieces shorter than a
// record are gathered, so that many small rows make few records.
#pragma once

#include "net/base/defaults.hpp"
#include "net/base/operation_memory.hpp"
#include "net/transport/tls.hpp"

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

namespace troupe::net {

class TlsStream {
public:
  using Socket = boost::asio::ip::tcp::socket;
  using ErrorCode = boost::system::error_code;
  using executor_type = Socket::executor_type;

  /// Creates a stream on a socket that must outlive it. The caller of an
  /// operation keeps both alive until its handler is called.
  TlsStream(Socket& socket, const TlsContext& context, TlsSession::Role role)
    : socket_(socket),
      session_(
        std::make_unique<TlsSession>(context, socket.native_handle(), role)) {}

  executor_type get_executor() {
    return socket_.get_executor();
  }
  /// Returns why the session broke, which asio's handlers see as
  /// connection_refused.
  const std::string& why() const noexcept {
    return session_->why();
  }
  bool lost_socket() const noexcept {
    return session_->lost_socket();
  }
  /// Releases the session for use with the bare socket; nothing may be in
  /// flight.
  std::unique_ptr<TlsSession> release() {
    return std::move(session_);
  }

  /// Runs the handshake, then calls `done(error)`.
  template <class Handler>
  void async_handshake(Handler done) {
    const auto memory = memory_of(done);
    go_on(
      [this] {
        return TlsSession::Moved{0, session_->shake_hands()};
      },
      HandlerIn(memory,
                [done = std::move(done)](const ErrorCode& error,
                                         std::size_t) mutable { done(error); }),
      true);
  }

  // Handlers are passed by reference: asio's own hold the source of `buffers`
  // and must not be moved before.
  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& done) {
    go_on([this, buffers] { return read(buffers); },
          std::forward<Handler>(done), true);
  }

  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& done) {
    go_on([this, buffers] { return write(buffers); },
          std::forward<Handler>(done), true);
  }

private:
  using Moved = TlsSession::Moved;
  using Next = TlsSession::Next;

  static ErrorCode error_of(Next next) {
    if (next == Next::ended)
      return boost::asio::error::eof;
    return next == Next::broken ? boost::asio::error::connection_refused
                                : ErrorCode{};
  }

  template <class Handler>
  static OperationMemory memory_of(const Handler& done) {
    return boost::asio::get_associated_allocator(done, OperationMemory());
  }

  /// Runs attempts until one succeeds; a handler must not run inside the call
  /// that starts its operation.
  template <class Attempt, class Handler>
  void go_on(Attempt attempt, Handler done, bool starting) {
    if (!socket_.is_open()) // closed while the end of the wait was queued
      return finish(boost::asio::error::operation_aborted, 0, std::move(done),
                    starting);
    const Moved moved = attempt();
    if (moved.next != Next::readable && moved.next != Next::writable)
      return finish(error_of(moved.next), moved.bytes, std::move(done),
                    starting);
    const auto memory = memory_of(done);
    socket_.async_wait(
      moved.next == Next::readable ? Socket::wait_read : Socket::wait_write,
      HandlerIn(memory,
                [this, attempt = std::move(attempt),
                 done = std::move(done)](const ErrorCode& error) mutable {
                  if (error)
                    return done(error, 0);
                  go_on(std::move(attempt), std::move(done), false);
                }));
  }

  template <class Handler>
  void finish(const ErrorCode& error, std::size_t bytes, Handler done,
              bool starting) {
    if (!starting)
      return done(error, bytes);
    const auto memory = memory_of(done);
    boost::asio::post(
      get_executor(),
      HandlerIn(memory, [error, bytes, done = std::move(done)]() mutable {
        done(error, bytes);
      }));
  }

  /// Reads what is available into these places.
  template <class Buffers>
  Moved read(const Buffers& buffers) {
    std::size_t sum = 0;
    const auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto at = boost::asio::buffer_sequence_begin(buffers); at != end;
         ++at) {
      const boost::asio::mutable_buffer place(*at);
      for (std::size_t got = 0; got < place.size();) {
        const Moved moved = session_->read(
          {static_cast<std::byte*>(place.data()) + got, place.size() - got});
        if (moved.next != Next::more)
          return sum > 0 ? Moved{sum, Next::more} : moved;
        got += moved.bytes;
        sum += moved.bytes;
      }
    }
    return {sum, Next::more};
  }

  /// Writes as much as there is room for.
  template <class Buffers>
  Moved write(const Buffers& buffers) {
    const std::size_t size = boost::asio::buffer_size(buffers);
    std::size_t sum = 0;
    while (sum < size) {
      const Moved moved = session_->write(bytes_at(buffers, sum));
      if (moved.next != Next::more)
        return sum > 0 ? Moved{sum, Next::more} : moved;
      sum += moved.bytes;
    }
    return {sum, Next::more};
  }

  /// Returns the bytes from `offset` on: a piece in place, or a record gathered
  /// from short ones.
  template <class Buffers>
  std::span<const std::byte> bytes_at(const Buffers& buffers,
                                      std::size_t offset) {
    std::size_t gathered = 0;
    const auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto at = boost::asio::buffer_sequence_begin(buffers); at != end;
         ++at) {
      const boost::asio::const_buffer piece
        = boost::asio::const_buffer(*at) + offset;
      offset -= std::min(offset, boost::asio::const_buffer(*at).size());
      const auto* data = static_cast<const std::byte*>(piece.data());
      if (gathered == 0 && piece.size() >= record_.size())
        return {data, piece.size()};
      const std::size_t taken
        = std::min(piece.size(), record_.size() - gathered);
      if (taken > 0)
        std::memcpy(record_.data() + gathered, data, taken);
      gathered += taken;
    }
    return {record_.data(), gathered};
  }

  Socket& socket_;
  std::unique_ptr<TlsSession> session_;
  std::array<std::byte, kTlsRecordBytes> record_{};
};

} // namespace troupe::net
