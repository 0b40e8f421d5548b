// A process that kills what programs of the user's have left when this process
// ends, however it ends: the kernel ends our children with us, but not theirs.
// The guard is a shell that waits for the end of a socket; it has no memory,
// environment or descriptors of ours.
#pragma once

#include "net/base/descriptor.hpp"

#include <sys/types.h>

namespace troupe::net {

class ChildGuard {
public:
  /// Throws FailureError (io) if the guard cannot be started.
  ChildGuard();
  ~ChildGuard(); ///< ends it: there is nothing left to guard
  ChildGuard(const ChildGuard&) = delete;
  ChildGuard& operator=(const ChildGuard&) = delete;

  /// Returns where a child writes "+PID\n", the number of its group.
  int socket() const {
    return socket_.get();
  }
  /// Tells it that a group has ended.
  void forget(pid_t group) const;

private:
  Descriptor socket_;
  pid_t pid_ = -1;
};

} // namespace troupe::net
