// Plain sockets of a chain: dial a peer's data plane with the token, and move
// bytes on several of them at once with poll, until done, aborted, or nothing
// moved within the deadline. Only the thread of the member is in here; abort()
// comes in through an eventfd.
#pragma once

#include "config/error.hpp"
#include "config/ids.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::net {

/// Owns a descriptor.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept
    : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const noexcept {
    return number_;
  }

private:
  int number_ = -1;
};

/// One direction of one socket. `done` counts bytes; a sending lane may go up
/// to *available, a receiving one up to `end`.
struct Lane {
  int socket = -1;
  std::string peer; ///< for messages
  bool sending = false;
  std::byte* data = nullptr;
  std::size_t end = 0;
  const std::size_t* available = nullptr; ///< sending only
  std::size_t done = 0;
  /// Receiving: where the next bytes go and how many (default: data + done).
  std::function<std::pair<std::byte*, std::size_t>()> next;
  /// Called with the number of bytes that just came.
  std::function<void(std::size_t)> received;
};

struct LaneWaits {
  int abort_event = -1; ///< readable: stop
  std::chrono::milliseconds progress_deadline{};
};

/// Runs all lanes to their ends. Throws FailureError: peer_lost, deadline, or
/// aborted when the event fired.
void run_lanes(std::vector<Lane*> lanes, const LaneWaits& waits);

struct GroupDial {
  std::string host;
  std::uint16_t port = 0;
  std::string token;
  WorkerId self;
  std::string group;
  std::uint32_t rank = 0; ///< mine
  std::string peer;       ///< for messages
};
/// A connected socket that the peer's registry gets the other end of. Throws
/// FailureError.
Descriptor dial_group(const GroupDial& dial, const LaneWaits& waits);

} // namespace troupe::net
