#include "net/transport/listener.hpp"

#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "net/base/open_files.hpp"

#include <boost/asio/steady_timer.hpp>

#include <utility>

namespace troupe::net {

namespace {

/// Pause when out of descriptors, or of places for strangers: trying again at
/// once would only spin.
constexpr std::chrono::milliseconds kRetryPause{100};

} // namespace

Listener::Listener(boost::asio::io_context& io, const std::string& who,
                   const std::string& address, std::uint16_t port)
  : acceptor_(io),
    who_(who) {
  using boost::asio::ip::tcp;
  try {
    const tcp::endpoint where(boost::asio::ip::make_address(address), port);
    acceptor_.open(where.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(where);
    acceptor_.listen();
    port_ = acceptor_.local_endpoint().port();
  } catch (const boost::system::system_error& error) {
    throw FailureError(
      {Errc::io, who,
       "cannot listen on " + address + ":" + std::to_string(port),
       error.code().message()});
  }
}

void Listener::start(Accepted on_socket) {
  on_socket_ = std::move(on_socket);
  accept_next();
}

void Listener::close() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  on_socket_ = nullptr;
}

void Listener::accept_next() {
  if (!acceptor_.is_open())
    return;
  if (pending_->full())
    return wait_for_newcomer();
  acceptor_.async_accept(
    [self = shared_from_this()](const boost::system::error_code& error,
                                Socket socket) {
      if (!self->acceptor_.is_open())
        return;
      if (error) {
        self->warn_once("accepting a connection failed: "
                        + why_no_open_file().value_or(error.message()));
        return self->after_pause([](Listener& own) { own.accept_next(); });
      }
      self->accepted(std::move(socket));
      self->accept_next();
    });
}

void Listener::accepted(Socket socket) {
  warned_ = pending_->full();
  boost::system::error_code gone;
  const auto from = socket.remote_endpoint(gone);
  if (gone)
    return;
  auto entry = pending_->add(AwakeClock::now());
  on_socket_(std::move(socket),
             from.address().to_string() + ":" + std::to_string(from.port()),
             std::move(entry));
  watch_pending();
}

/// Waits until there is a connection that could be accepted.
void Listener::wait_for_newcomer() {
  acceptor_.async_wait(
    boost::asio::ip::tcp::acceptor::wait_read,
    [self = shared_from_this()](const boost::system::error_code&) {
      self->make_room();
    });
}

void Listener::make_room() {
  if (!acceptor_.is_open())
    return;
  if (pending_->make_room(AwakeClock::now()))
    return accept_next();
  warn_once("port " + std::to_string(port_)
            + " has more connections than it answers, and they do not say who "
              "they are: is another program trying it?");
  after_pause([](Listener& own) { own.make_room(); });
}

/// Checks the times while anybody waits.
void Listener::watch_pending() {
  if (watched_ || pending_->empty())
    return;
  watched_ = true;
  after_pause([](Listener& own) {
    own.watched_ = false;
    own.pending_->close_late(AwakeClock::now());
    own.watch_pending();
  });
}

/// Warns once until a connection is accepted: what failed is retried soon.
void Listener::warn_once(const std::string& what) {
  if (!std::exchange(warned_, true))
    log::net.warn(who_ + ": " + what);
}

template <class Body>
void Listener::after_pause(Body body) {
  auto timer
    = std::make_shared<boost::asio::steady_timer>(acceptor_.get_executor());
  timer->expires_after(kRetryPause);
  timer->async_wait([self = shared_from_this(), timer,
                     body](const boost::system::error_code&) { body(*self); });
}

} // namespace troupe::net
