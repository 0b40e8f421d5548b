// Accepts connections on one address until closed: the only place where TCP
// connections are accepted, besides CAF's endpoint. Runs on the I/O thread.
#pragma once

#include "net/transport/pending_connections.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::net {

class Listener : public std::enable_shared_from_this<Listener> {
public:
  /// Takes a connection, which leaves its place once it has greeted.
  using Accepted = std::function<void(
    boost::asio::ip::tcp::socket, std::string peer, PendingConnections::Entry)>;

  /// Binds at once. Throws FailureError (io) of `who`: port in use, address not
  /// local.
  Listener(boost::asio::io_context& io, const std::string& who,
           const std::string& address, std::uint16_t port);
  void start(Accepted on_socket);
  void close();
  std::uint16_t port() const noexcept {
    return port_;
  }

private:
  using Socket = boost::asio::ip::tcp::socket;

  void accept_next();
  void accepted(Socket socket);
  void wait_for_newcomer();
  void make_room();
  void watch_pending();
  void warn_once(const std::string& what);
  template <class Body>
  void after_pause(Body body);

  boost::asio::ip::tcp::acceptor acceptor_;
  std::shared_ptr<PendingConnections> pending_
    = std::make_shared<PendingConnections>();
  std::string who_;
  std::uint16_t port_ = 0;
  Accepted on_socket_;
  bool watched_ = false; ///< whether a timer checks the pending ones
  bool warned_ = false;
};

} // namespace troupe::net
