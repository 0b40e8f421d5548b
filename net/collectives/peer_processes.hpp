// Liveness of the processes that have members of groups. One descriptor (pidfd)
// per peer process, shared by all groups of this process: one per pair of
// devices and group would be thousands on a large host.
#pragma once

#include "net/base/descriptor.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace troupe::net {

/// A process of this host, identified at the time of its first look-up.
class PeerProcess {
public:
  explicit PeerProcess(std::int32_t pid);
  /// Returns true if it has ended. Without a descriptor (a limit) it checks the
  /// number, which exists until the parent has reaped the process.
  bool ended() const;

private:
  std::int32_t pid_;
  Descriptor pidfd_;
  bool was_gone_ = false;
};

/// The processes by number; thread-safe.
class PeerProcesses {
public:
  /// Returns the same object to all callers as long as one of them keeps it; a
  /// number that the system reuses later refers to the new process.
  std::shared_ptr<const PeerProcess> find(std::int32_t pid);

private:
  std::mutex mutex_;
  std::map<std::int32_t, std::weak_ptr<const PeerProcess>> known_;
};

} // namespace troupe::net
