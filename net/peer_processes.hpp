// Whether the processes that members of groups are in still live. One
// descriptor (pidfd) per peer process, shared by all groups of this process:
// one per pair of devices and group would be thousands on a large host.
#pragma once

#include "net/descriptor.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace troupe::net {

/// A process of this host, from the moment on at which it was first looked at.
class PeerProcess {
public:
  explicit PeerProcess(std::int32_t pid);
  /// Where no descriptor could be had (a limit), asks for the number: that
  /// finds the process until its parent has collected it.
  bool ended() const;

private:
  std::int32_t pid_;
  Descriptor pidfd_;
  bool was_gone_ = false;
};

/// Thread-safe.
class PeerProcesses {
public:
  /// The same object for all callers as long as one of them keeps it, so a
  /// number that the system gives to another process later is that process.
  std::shared_ptr<const PeerProcess> find(std::int32_t pid);

private:
  std::mutex mutex_;
  std::map<std::int32_t, std::weak_ptr<const PeerProcess>> known_;
};

} // namespace troupe::net
