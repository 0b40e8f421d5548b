// Silent connections to a port of this host, as any user of it can make.
#pragma once

#include "tests/support/net/wire_tap.hpp"
#include <poll.h>
#include <sys/resource.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <vector>

namespace troupe::test {

class SilentStrangers {
public:
  SilentStrangers(std::uint16_t port, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      sockets_.push_back(connect_to(port));
  }

  /// Returns how many were closed by the other end, which may take `within`.
  std::size_t num_closed(std::chrono::milliseconds within) const {
    const auto end = std::chrono::steady_clock::now() + within;
    std::size_t closed = 0;
    do {
      closed = 0;
      for (const auto& socket : sockets_) {
        pollfd ended{socket.get(), POLLIN, 0};
        closed += ::poll(&ended, 1, 0) > 0 ? 1 : 0;
      }
      if (closed < sockets_.size())
        ::poll(nullptr, 0, 50);
    } while (closed < sockets_.size()
             && std::chrono::steady_clock::now() < end);
    return closed;
  }

private:
  std::vector<net::Descriptor> sockets_;
};

/// Returns the open descriptors of this process.
inline std::size_t num_descriptors() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    count += entry.path().empty() ? 0 : 1;
  return count;
}

} // namespace troupe::test
