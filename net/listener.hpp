// Accepts connections on one address until closed. Lives on the I/O thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::net {

class Listener : public std::enable_shared_from_this<Listener> {
public:
  using Accepted
    = std::function<void(boost::asio::ip::tcp::socket, std::string peer)>;

  /// Binds at once. Throws FailureError (io): port in use, address not ours.
  Listener(boost::asio::io_context& io, const std::string& address,
           std::uint16_t port);
  void start(Accepted on_socket);
  void close();
  std::uint16_t port() const noexcept {
    return port_;
  }

private:
  void accept_next();
  void warn_once(const std::string& what);
  void wait_a_moment();

  boost::asio::ip::tcp::acceptor acceptor_;
  std::uint16_t port_ = 0;
  Accepted on_socket_;
  bool warned_ = false;
};

} // namespace troupe::net
