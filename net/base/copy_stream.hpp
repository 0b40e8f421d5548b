// Copies between a device and the host beside the device's kernels: they start
// after the kernels so far, run on a stream of their own, and neither the host
// nor later kernels wait for them unless they say so. Planes come and go by
// them, and what is written to files is staged by them (staged_copy.hpp).
#pragma once

#include <cstddef>
#include <memory>

namespace troupe::net {

/// A copy that is under way.
class PendingCopy {
public:
  virtual ~PendingCopy() = default;
  /// Makes kernels that are launched from now on wait for the copy.
  virtual void before_kernels() = 0;
  /// Returns when the copy is done.
  virtual void wait() = 0;
};

/// Plain functions, as those of BlockMemory.
struct CopyStream {
  /// Locks pages of host memory, so that the device copies by itself; returns
  /// false, with a warning, if it refuses: copies are then right, but slow.
  bool (*lock)(void* data, std::size_t size_bytes);
  void (*unlock)(void* data);
  /// Starts a copy to host memory, after all kernels so far and after another
  /// copy, which may be null.
  std::shared_ptr<PendingCopy> (*start_read)(const void* from, void* to,
                                             std::size_t size_bytes,
                                             PendingCopy* after);
  /// Starts a copy from host memory likewise.
  std::shared_ptr<PendingCopy> (*start_write)(const void* from, void* to,
                                              std::size_t size_bytes,
                                              PendingCopy* after);
  /// Keeps the memory of a block, even if it is freed, until its copy is done:
  /// nobody waits, and no other block gets it before.
  void (*keep)(void* block, PendingCopy& copy);
};

/// Waits for a copy, if there is one, before the memory that it uses is gone.
/// Logs an error of the device, which nobody can mend then.
void finish_copy(const std::shared_ptr<PendingCopy>& copy) noexcept;

} // namespace troupe::net
