#include "net/transport/connection.hpp"

#include "net/base/defaults.hpp"
#include "net/base/operation_memory.hpp"

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <utility>

namespace troupe::net {

namespace asio = boost::asio;

Connection::Connection(Socket socket, std::string peer,
                       std::chrono::milliseconds progress_deadline)
  : socket_(std::move(socket)),
    timer_(socket_.get_executor()),
    peer_(std::move(peer)),
    deadline_(progress_deadline),
    last_progress_(AwakeClock::now()) {}

auto Connection::transfer_in_big_parts() {
  return [this](const ErrorCode& error, std::size_t) -> std::size_t {
    last_progress_ = AwakeClock::now();
    return error ? 0 : kMaxReadBytes;
  };
}

/// Allocates an operation in memory of this connection: asio returns it before
/// it calls or drops the handler, which keeps this connection alive.
template <class Body>
auto Connection::in_own_memory(Body body) {
  return HandlerIn(OperationMemory(&memory_),
                   [self = shared_from_this(), body = std::move(body)](
                     const auto&... arguments) { body(arguments...); });
}

/// Runs `body`; a WireError of a handler closes the connection, other
/// exceptions must not occur.
template <class Body>
void Connection::guarded(Body&& body) {
  try {
    body();
  } catch (const std::exception& error) {
    close({Errc::refused, peer_, error.what(), ""});
  }
}

void Connection::start(std::shared_ptr<ConnectionHandler> handler,
                       const FrameLimits& limits) {
  handler_ = std::move(handler);
  limits_ = limits;
  ErrorCode ignored; // without the option a socket is only slower
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  if (tls_)
    shake_hands();
  else
    read_prelude();
  watch_progress();
}

void Connection::secure(const TlsContext& context, TlsSession::Role role) {
  tls_ = std::make_unique<TlsStream>(socket_, context, role);
}

void Connection::shake_hands() {
  stage_ = Stage::greeting;
  tls_->async_handshake(in_own_memory([this](const ErrorCode& error) {
    if (closed_)
      return;
    if (error)
      return fail(error, "the TLS handshake");
    stage_ = Stage::greeted;
    read_prelude();
    if (!can_send())
      write_frame();
  }));
}

/// Runs an operation on the TLS session, if any, else on the socket.
template <class Operation>
void Connection::through_stream(Operation&& operation) {
  if (tls_)
    operation(*tls_);
  else
    operation(socket_);
}

/// Fills `places`, then continues with `body` unless the connection is closed.
template <class Body>
void Connection::read_all(std::span<const asio::mutable_buffer> places,
                          Body body) {
  auto done = in_own_memory([this, body](const ErrorCode& error, std::size_t) {
    if (closed_)
      return;
    if (error)
      return fail(error, "reading");
    guarded(body);
  });
  through_stream([&](auto& stream) {
    asio::async_read(stream, places, transfer_in_big_parts(), std::move(done));
  });
}

void Connection::read_prelude() {
  reading_ = true;
  mid_frame_ = false;
  targets_.assign({asio::buffer(prelude_bytes_)});
  read_all(targets_, [this] {
    mid_frame_ = true;
    prelude_ = decode_prelude(prelude_bytes_, limits_);
    header_.resize(prelude_.header_bytes);
    read_header();
  });
}

void Connection::read_header() {
  watch_progress();
  targets_.assign({asio::buffer(header_)});
  read_all(targets_, [this] {
    auto handler = handler_;
    message_ = decode_header(header_, std::move(message_));
    targets_.clear();
    handler->on_header(message_, prelude_.payload_bytes, targets_);
    if (!closed_)
      read_payload();
  });
}

void Connection::read_payload() {
  if (asio::buffer_size(targets_) != prelude_.payload_bytes)
    throw WireError("payload of another size than its header says");
  if (prelude_.payload_bytes == 0)
    return frame_done();
  read_all(targets_, [this] { frame_done(); });
}

void Connection::frame_done() {
  reading_ = mid_frame_ = false;
  stage_ = Stage::known;
  auto handler = handler_;
  if (handler->on_frame(message_) && !closed_ && !reading_)
    read_prelude();
}

void Connection::resume_reading() {
  if (!closed_ && !reading_)
    read_prelude();
}

void Connection::OutgoingFrame::clear() {
  head.clear();
  pieces.clear();
  payload.clear();
}

void Connection::send(const Message& message,
                      std::span<const PayloadPart> payload) {
  if (closed_)
    return;
  TROUPE_CHECK(can_send(), "a frame is on its way to " + peer_);
  std::uint64_t payload_bytes = 0;
  frame_.pieces.emplace_back(); // the head
  for (const auto& [memory, runs] : payload) {
    payload_bytes += runs.runs * runs.run_bytes;
    frame_.payload.push_back(memory);
    for (std::uint64_t i = 0; i < runs.runs; ++i)
      frame_.pieces.emplace_back(memory.data() + runs.offset_bytes
                                   + i * runs.stride_bytes,
                                 runs.run_bytes);
  }
  frame_.head = encode_frame(message, payload_bytes, std::move(frame_.head));
  frame_.pieces.front() = asio::buffer(frame_.head);
  if (stage_ != Stage::greeting)
    write_frame();
}

void Connection::write_frame() {
  writing_ = true;
  auto done = in_own_memory([this](const ErrorCode& error, std::size_t bytes) {
    frame_written(error, bytes);
  });
  through_stream([&](auto& stream) {
    asio::async_write(stream,
                      std::span<const asio::const_buffer>(frame_.pieces),
                      transfer_in_big_parts(), std::move(done));
  });
  watch_progress();
}

void Connection::frame_written(const ErrorCode& error, std::size_t bytes) {
  bytes_sent_ += bytes;
  writing_ = false;
  frame_.clear(); // only now: the kernel may have been reading it
  if (closed_)
    return;
  if (error)
    return fail(error, "writing");
  guarded([this] {
    auto handler = handler_;
    handler->on_written();
  });
  if (!closed_ && !writing_ && close_when_written_)
    close(close_reason_);
}

bool Connection::moving_expected() const {
  return writing_ || mid_frame_ || (handler_ && handler_->expects_frames());
}

void Connection::watch_progress() {
  last_progress_ = AwakeClock::now();
  if (!closed_ && !timer_armed_ && moving_expected())
    arm_timer();
}

void Connection::arm_timer() {
  timer_armed_ = true;
  timer_.expires_after(last_progress_ + deadline_ - AwakeClock::now());
  timer_.async_wait(in_own_memory([this](const ErrorCode& error) {
    timer_armed_ = false;
    if (error || closed_ || !moving_expected())
      return;
    if (AwakeClock::now() < last_progress_ + deadline_)
      return arm_timer();
    close({Errc::deadline, peer_,
           "no byte moved for " + std::to_string(deadline_.count()) + " ms",
           ""});
  }));
}

/// Who is refused never gets as far as a frame, later TLS breaks with the peer.
/// So does a handshake whose socket breaks: TLS would say what it refuses.
Errc Connection::code_of_broken_tls() const {
  const bool is_lost = stage_ == Stage::known
                       || (stage_ == Stage::greeting && tls_->lost_socket());
  return is_lost ? Errc::peer_lost : Errc::refused;
}

void Connection::fail(const ErrorCode& error, const char* doing) {
  if (tls_ && !tls_->why().empty())
    return close({code_of_broken_tls(), peer_,
                  std::string(doing) + " failed: TLS: " + tls_->why(), ""});
  const bool ended = error == asio::error::eof;
  close({Errc::peer_lost, peer_,
         ended ? std::string("the peer closed the connection")
               : std::string(doing) + " failed: " + error.message(),
         ""});
}

void Connection::close_after_writing(Failure failure) {
  close_when_written_ = true;
  close_reason_ = std::move(failure);
  if (!writing_)
    close(close_reason_);
}

void Connection::close(const Failure& failure) {
  if (std::exchange(closed_, true))
    return;
  ErrorCode ignored; // a socket that is gone already is closed as well
  socket_.close(ignored);
  timer_.cancel();
  if (!writing_)
    frame_.clear();
  auto handler = std::exchange(handler_, nullptr);
  if (handler)
    handler->on_closed(failure);
}

PeerSocket Connection::release() {
  closed_ = true;
  timer_.cancel();
  ErrorCode error;
  Descriptor descriptor(socket_.release(error));
  auto handler = std::exchange(handler_, nullptr);
  if (error)
    return {};
  return PeerSocket(std::move(descriptor), tls_ ? tls_->release() : nullptr);
}

} // namespace troupe::net
