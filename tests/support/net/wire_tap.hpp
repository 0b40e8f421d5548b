// A proxy between a client and a port of this host that forwards all bytes and
// keeps a copy of both directions.
#pragma once

#include "net/base/descriptor.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::test {

inline sockaddr_in loopback_at(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline net::Descriptor connect_to(std::uint16_t port) {
  net::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = loopback_at(port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                sizeof(address))
      != 0)
    throw std::runtime_error("nothing listens at the port");
  return socket;
}

class WireTap {
public:
  explicit WireTap(std::uint16_t target)
    : target_(target),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    auto address = loopback_at(0);
    socklen_t size = sizeof(address);
    auto* place = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_.get(), place, size) != 0
        || ::listen(listener_.get(), 8) != 0
        || ::getsockname(listener_.get(), place, &size) != 0)
      throw std::runtime_error("no port for a tap");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { pass_on(); });
  }
  ~WireTap() {
    ending_ = true;
    thread_.join();
  }
  WireTap(const WireTap&) = delete;
  WireTap& operator=(const WireTap&) = delete;

  std::uint16_t port() const {
    return port_;
  }
  bool saw(std::string_view bytes) const {
    const std::lock_guard lock(mutex_);
    return seen_[0].find(bytes) != std::string::npos
           || seen_[1].find(bytes) != std::string::npos;
  }
  std::size_t bytes() const {
    const std::lock_guard lock(mutex_);
    return seen_[0].size() + seen_[1].size();
  }

private:
  struct Pair {
    std::array<net::Descriptor, 2> ends; ///< client, target
    bool open = true;
  };

  void pass_on() {
    while (!ending_) {
      std::vector<pollfd> ready{{listener_.get(), POLLIN, 0}};
      for (const Pair& pair : pairs_)
        for (const auto& end : pair.ends)
          ready.push_back({end.get(), POLLIN, 0});
      ::poll(ready.data(), ready.size(), 20);
      const pollfd* of_pair = ready.data() + 1;
      for (Pair& pair : pairs_) {
        pair.open = (of_pair[0].revents == 0 || pass(pair, 0))
                    && (of_pair[1].revents == 0 || pass(pair, 1));
        of_pair += 2;
      }
      pairs_.remove_if([](const Pair& pair) { return !pair.open; });
      if (ready[0].revents != 0)
        pairs_.push_back(
          {{net::Descriptor(::accept(listener_.get(), nullptr, nullptr)),
            connect_to(target_)}});
    }
  }

  /// Forwards bytes; returns false at the end of the connection.
  bool pass(Pair& pair, std::size_t from) {
    std::array<char, 65536> block{};
    const ssize_t came
      = ::recv(pair.ends[from].get(), block.data(), block.size(), 0);
    if (came <= 0)
      return false;
    const std::string_view bytes(block.data(), static_cast<std::size_t>(came));
    {
      const std::lock_guard lock(mutex_);
      seen_[from] += bytes;
    }
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t went
        = ::send(pair.ends[1 - from].get(), bytes.data() + sent,
                 bytes.size() - sent, MSG_NOSIGNAL);
      if (went <= 0)
        return false;
      sent += static_cast<std::size_t>(went);
    }
    return true;
  }

  std::uint16_t target_;
  net::Descriptor listener_;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::array<std::string, 2> seen_; ///< from the client, from the target
  std::list<Pair> pairs_;           ///< used by the thread
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

} // namespace troupe::test
