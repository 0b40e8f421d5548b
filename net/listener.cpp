#include "net/listener.hpp"

#include "config/error.hpp"
#include "config/log.hpp"
#include "net/open_files.hpp"

#include <boost/asio/steady_timer.hpp>

#include <utility>

namespace troupe::net {

namespace {

/// Out of descriptors: accepting again at once would only spin.
constexpr std::chrono::milliseconds kAcceptRetryPause{100};

} // namespace

Listener::Listener(boost::asio::io_context& io, const std::string& address,
                   std::uint16_t port)
  : acceptor_(io) {
  using boost::asio::ip::tcp;
  try {
    const tcp::endpoint where(boost::asio::ip::make_address(address), port);
    acceptor_.open(where.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(where);
    acceptor_.listen();
    port_ = acceptor_.local_endpoint().port();
  } catch (const boost::system::system_error& error) {
    throw FailureError({Errc::io, "data plane",
                        "cannot listen on " + address + ":"
                          + std::to_string(port) + ": "
                          + error.code().message(),
                        ""});
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
  acceptor_.async_accept(
    [self = shared_from_this()](const boost::system::error_code& error,
                                boost::asio::ip::tcp::socket socket) {
      if (!self->acceptor_.is_open())
        return;
      if (error) {
        self->warn_once(error.message());
        return self->wait_a_moment();
      }
      self->warned_ = false;
      boost::system::error_code gone;
      const auto from = socket.remote_endpoint(gone);
      if (!gone)
        self->on_socket_(std::move(socket), from.address().to_string() + ":"
                                              + std::to_string(from.port()));
      self->accept_next();
    });
}

/// Once until a connection is accepted: it is tried again soon.
void Listener::warn_once(const std::string& what) {
  if (!std::exchange(warned_, true))
    log::net.warn("accepting a connection failed: "
                  + why_no_open_file().value_or(what));
}

void Listener::wait_a_moment() {
  auto timer
    = std::make_shared<boost::asio::steady_timer>(acceptor_.get_executor());
  timer->expires_after(kAcceptRetryPause);
  timer->async_wait(
    [self = shared_from_this(), timer](const boost::system::error_code&) {
      if (self->acceptor_.is_open())
        self->accept_next();
    });
}

} // namespace troupe::net
