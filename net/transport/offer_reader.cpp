#include "net/transport/offer_reader.hpp"

#include "config/base/log.hpp"
#include "net/base/defaults.hpp"
#include "net/base/wire.hpp"

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <charconv>
#include <utility>

namespace troupe::net {

namespace asio = boost::asio;

namespace {

constexpr std::size_t number_digits = 8;

/// Returns the number of hexadecimal digits; nullopt if they are none.
std::optional<std::uint32_t> number_of(std::string_view digits) {
  constexpr int base = 16;
  std::uint32_t number = 0;
  const auto* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number, base);
  if (read.ec != std::errc() || read.ptr != end)
    return std::nullopt;
  return number;
}

} // namespace

OfferReader::OfferReader(asio::ip::tcp::socket socket, std::string peer,
                         PendingConnections::Entry entry, OfferState& offer)
  : socket_(std::move(socket)),
    timer_(socket_.get_executor()),
    peer_(std::move(peer)),
    entry_(std::move(entry)),
    offer_(offer),
    greeting_(offer.token.size() + number_digits, '\0'),
    last_progress_(AwakeClock::now()) {}

void OfferReader::start() {
  entry_.when_late([self = weak_from_this()] {
    if (const auto late = self.lock())
      late->refuse_stranger("it did not say who it is");
  });
  if (offer_.tls)
    return shake_hands();
  read_greeting();
}

/// Runs an operation on the TLS session, if any, else on the socket.
template <class Operation>
void OfferReader::through_stream(Operation&& operation) {
  if (tls_)
    operation(*tls_);
  else
    operation(socket_);
}

void OfferReader::shake_hands() {
  tls_.emplace(socket_, *offer_.tls, TlsSession::Role::accepts);
  tls_->async_handshake([self = shared_from_this()](const ErrorCode& error) {
    if (self->closed_)
      return;
    if (error)
      return self->refuse_stranger("the TLS handshake failed: "
                                   + self->tls_->why());
    self->read_greeting();
  });
}

void OfferReader::read_greeting() {
  through_stream([this](auto& stream) {
    asio::async_read(
      stream, asio::buffer(greeting_),
      [self = shared_from_this()](const ErrorCode& error, std::size_t) {
        if (self->closed_)
          return;
        if (error)
          return self->refuse_stranger("no token came");
        self->greet();
      });
  });
}

void OfferReader::greet() {
  const auto split = offer_.token.size();
  if (!same_token(greeting_.substr(0, split), offer_.token))
    return refuse_stranger("wrong token");
  entry_.leave();
  const auto number = number_of(std::string_view(greeting_).substr(split));
  if (!number || *number >= kMaxOfferReaders)
    return fail(Errc::refused, "its number is none of a rank");
  peer_ = "reader " + std::to_string(*number) + " (" + peer_ + ")";
  if (!offer_.numbers.insert(*number).second)
    return fail(Errc::refused, "it reads a second time");
  send_all();
}

void OfferReader::send_all() {
  last_progress_ = AwakeClock::now();
  watch_progress();
  through_stream([this](auto& stream) {
    asio::async_write(
      stream, asio::buffer(offer_.bytes.data(), offer_.bytes.size()),
      [self = shared_from_this()](const ErrorCode& error,
                                  std::size_t bytes) -> std::size_t {
        self->moved(bytes);
        return error ? 0 : kMaxReadBytes;
      },
      [self = shared_from_this()](const ErrorCode& error, std::size_t) {
        if (self->closed_)
          return;
        if (error)
          return self->lose(error);
        self->wait_for_close();
      });
  });
}

/// Notes how many bytes the kernel has taken.
void OfferReader::moved(std::size_t bytes) {
  if (bytes > sent_)
    last_progress_ = AwakeClock::now();
  sent_ = bytes;
}

/// A reader that has all bytes closes; one that goes before resets the
/// connection. Below TLS, since a close need not be announced in it.
void OfferReader::wait_for_close() {
  last_progress_ = AwakeClock::now();
  socket_.async_wait(asio::ip::tcp::socket::wait_read,
                     [self = shared_from_this()](ErrorCode error) {
                       if (self->closed_)
                         return;
                       std::byte next{};
                       if (!error)
                         self->socket_.receive(asio::buffer(&next, 1),
                                               asio::socket_base::message_peek,
                                               error);
                       if (error && error != asio::error::eof)
                         return self->lose(error);
                       self->close();
                     });
}

void OfferReader::watch_progress() {
  timer_.expires_after(last_progress_ + offer_.progress_deadline
                       - AwakeClock::now());
  timer_.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (error || self->closed_)
      return;
    const auto limit = self->offer_.progress_deadline;
    if (AwakeClock::now() < self->last_progress_ + limit)
      return self->watch_progress();
    self->fail(Errc::deadline,
               "it took no byte for " + std::to_string(limit.count()) + " ms");
  });
}

void OfferReader::lose(const ErrorCode& error) {
  const bool ended = error == asio::error::eof
                     || error == asio::error::connection_reset
                     || error == asio::error::broken_pipe;
  const auto why = tls_ && !tls_->why().empty() ? tls_->why() : error.message();
  fail(Errc::peer_lost, ended ? "it closed the connection" : why);
}

/// Ends a reader that has the token; the first failure is the offer's.
void OfferReader::fail(Errc code, const std::string& what) {
  {
    const std::lock_guard lock(offer_.mutex);
    if (!offer_.failure)
      offer_.failure = {code, offer_.who + ", " + peer_,
                        what + ", after " + std::to_string(sent_) + " of "
                          + std::to_string(offer_.bytes.size()) + " bytes",
                        ""};
  }
  close();
}

void OfferReader::refuse_stranger(const std::string& why) {
  log::warn_of_stranger(log::net,
                        offer_.who + ": refused " + peer_ + ": " + why);
  close();
}

void OfferReader::close() {
  if (std::exchange(closed_, true))
    return;
  entry_.leave();
  ErrorCode ignored; // a socket that is gone already is closed as well
  socket_.close(ignored);
  timer_.cancel();
}

} // namespace troupe::net
