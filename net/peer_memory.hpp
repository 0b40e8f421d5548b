// Memory of other processes that this one can read as its own. A process says
// where its shared blocks are by exporting their places as memory of its own
// numbers; whoever wants to read one pulls the place, maps it once and keeps
// it. What cannot be mapped (another host, another user) is pulled as bytes.
#pragma once

#include "config/ids.hpp"
#include "net/page_block.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>

namespace troupe::net {

class DataPlane;

/// The number under which the place of export `id` is exported.
constexpr std::uint64_t place_id(std::uint64_t id) {
  return id | std::uint64_t{1} << 59;
}

class PeerMemory {
public:
  /// The bytes that `worker` exports as `id`, or nothing if they must be
  /// pulled. Waits for the peer's answer at the first question. Thread-safe;
  /// not for the data plane's own thread. Throws FailureError when the peer is
  /// lost.
  std::span<const std::byte> find(DataPlane& plane, WorkerId worker,
                                  std::uint64_t id);

private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::optional<MappedPlace>> mapped_;
};

} // namespace troupe::net
