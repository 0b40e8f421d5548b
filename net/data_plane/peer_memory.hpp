// Memory of other processes that this one can map. A process publishes handles
// of its shared blocks by exporting them under numbers of their own; a reader
// pulls the handle, maps the block once and keeps it mapped. Blocks that cannot
// be mapped (another host, another user) are pulled as bytes.
#pragma once

#include "config/base/ids.hpp"
#include "net/base/page_block.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace troupe::net {

class DataPlane;

/// Returns the number under which the handle of export `id` is exported.
constexpr std::uint64_t handle_id(std::uint64_t id) {
  return id | std::uint64_t{1} << 59;
}

class PeerMemory {
public:
  /// Returns the bytes that `worker` exports as `id`, in the host's memory or
  /// that of `device` (null: there is none), or none if they must be pulled.
  /// Waits for the peer's reply on the first call. Thread-safe; must not run on
  /// the data plane's thread. Throws FailureError if the peer is lost.
  BlockBytes find(DataPlane& plane, WorkerId worker, std::uint64_t id,
                  const BlockMemory* device = nullptr);

private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::optional<MappedHandle>> mapped_;
};

} // namespace troupe::net
