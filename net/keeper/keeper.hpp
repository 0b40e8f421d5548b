// A process per host that owns memory files for the workers of a run, so that
// what they store there outlives them: snapshots of weights and of the
// optimizer. It computes nothing and reads nothing; its clients map or write
// the files themselves. Its memory is freed when it ends, however it ends.
//
// Reached by name through an abstract socket, by processes of the same user
// only. A request is one packet: a file's name (the reply carries its
// descriptor), or nothing (the keeper ends).
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <functional>
#include <string>

namespace troupe::net {

/// Most bytes of a file's name.
inline constexpr std::size_t kKeptNameBytes = 200;

/// An abstract address: the bytes after `size_bytes` are not part of it.
struct KeeperAddress {
  sockaddr_un bytes{};
  socklen_t size_bytes = 0;

  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&bytes);
  }
};
/// Returns the address of the keeper `name`.
KeeperAddress keeper_address(const std::string& name);

/// Returns whether the peer of a local socket is a process of this user.
bool is_of_this_user(int socket);

/// Keeps files until a client ends it or nobody has been connected for
/// `patience`. Calls `listening` once clients can connect. Returns false if
/// another keeper has the name. Throws FailureError (io).
bool run_keeper(const std::string& name, std::chrono::milliseconds patience,
                const std::function<void()>& listening);

} // namespace troupe::net
