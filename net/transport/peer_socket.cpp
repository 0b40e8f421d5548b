#include "net/transport/peer_socket.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace troupe::net {

namespace {

constexpr const char* kClosedByPeer = "the peer closed the connection";

std::size_t plain_bytes(ssize_t moved) {
  if (moved >= 0)
    return static_cast<std::size_t>(moved);
  if (errno == EAGAIN || errno == EINTR)
    return 0;
  throw SocketLost(std::string("the connection broke: ")
                   + std::strerror(errno));
}

std::size_t tls_bytes(const TlsSession& session, TlsSession::Moved moved) {
  if (moved.next == TlsSession::Next::ended)
    throw SocketLost(kClosedByPeer);
  if (moved.next == TlsSession::Next::broken)
    throw SocketLost("the connection broke: " + session.why());
  return moved.bytes;
}

} // namespace

std::size_t PeerSocket::send(const std::byte* data, std::size_t most) {
  if (session_)
    return tls_bytes(*session_, session_->write({data, most}));
  return plain_bytes(
    ::send(socket_.get(), data, most, MSG_NOSIGNAL | MSG_DONTWAIT));
}

std::size_t PeerSocket::receive(std::byte* into, std::size_t most) {
  if (session_)
    return tls_bytes(*session_, session_->read({into, most}));
  const ssize_t came = ::recv(socket_.get(), into, most, MSG_DONTWAIT);
  if (came == 0)
    throw SocketLost(kClosedByPeer);
  return plain_bytes(came);
}

} // namespace troupe::net
