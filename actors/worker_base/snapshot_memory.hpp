// The memory files of snapshots on this worker's host, owned by the keeper
// (net/keeper): written by this worker's devices, lent to workers of other
// hosts, and copied from theirs. What is lent is mapped and exported to the
// data plane, so copies are moves of memory as any other, and the keeper knows
// no network.
#pragma once

#include "actors/protocol/snapshot_messages.hpp"
#include "net/base/descriptor.hpp"
#include "net/data_plane/data_plane.hpp"
#include "net/keeper/keeper_client.hpp"
#include "plans/recovery/snapshot_places.hpp"

#include <cstdint>
#include <mutex>
#include <set>
#include <string>

namespace troupe::actors {

/// Planes in one slot.
struct SnapshotFile {
  plans::SnapshotPlace place;
  std::uint32_t slot = 0;
};

class SnapshotMemory {
public:
  /// `keeper` is the name of the run's keepers.
  explicit SnapshotMemory(const std::string& keeper);

  /// Starts the keeper of this host, ahead of the first file.
  void start_keeper() noexcept {
    keeper_.start_if_none();
  }
  /// Returns whether this host has a keeper of the run.
  bool find_keeper() {
    return keeper_.find();
  }
  /// Ends the keeper; no file can be opened afterwards.
  void end();
  /// Returns the file to be read; it is empty if this host does not have it.
  net::Descriptor open(const SnapshotFile& file);
  /// Returns the file to be written; nobody reads it from then on.
  net::Descriptor open_to_write(net::DataPlane& plane,
                                const SnapshotFile& file);
  /// Lets other workers read the file as it is, until it is written again; does
  /// nothing if it is empty.
  void lend(net::DataPlane& plane, const SnapshotFile& file);
  /// Returns whether this host has the planes of snapshot `id` in `file`.
  bool has(const SnapshotFile& file, std::uint64_t id);

private:
  net::KeeperClient keeper_;
  net::Descriptor open_locked(const SnapshotFile& file);

  std::mutex mutex_;
  bool ended_ = false;
  std::set<std::uint64_t> lent_; ///< numbers of exports
};

/// Copies `file` of another worker, which is snapshot `id`, to the memory file
/// `into`. Returns its bytes; 0: that worker has not got it. Waits for the
/// network. Throws FailureError.
std::uint64_t pull_snapshot(net::DataPlane& plane, const SnapshotFile& file,
                            std::uint64_t id, const net::Descriptor& into);

/// Returns a memory file that ends with its descriptor.
net::Descriptor unkept_file();

} // namespace troupe::actors
