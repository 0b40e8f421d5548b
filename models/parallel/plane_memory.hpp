// The memory of one plane: a block of its device, and host memory that it
// leaves for. On the CPU it returns to the same address, on a GPU to any.
//
// A device with copies of its own (net/base/copy_stream.hpp) copies it beside
// its kernels: what a plane leaves is free at once, and what returns is waited
// for by the kernels that use it. The host waits only where it reads, itself or
// for others.
#pragma once

#include "net/base/copy_stream.hpp"
#include "net/base/memory_count.hpp"
#include "net/base/page_block.hpp"
#include "net/base/page_lock.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe::models {

class PlaneMemory {
public:
  /// How blocks are shared with other processes.
  struct Sharing {
    net::PageSharing device = net::PageSharing::by_descriptor;
    net::PageSharing host = net::PageSharing::by_descriptor;
  };
  /// Allocates zeros on the device; a null `memory` means system memory.
  PlaneMemory(std::int64_t size, const net::BlockMemory* memory,
              Sharing sharing);
  ~PlaneMemory();
  PlaneMemory(const PlaneMemory&) = delete;
  PlaneMemory& operator=(const PlaneMemory&) = delete;

  std::int64_t size() const { ///< elements
    return size_;
  }
  std::size_t size_bytes() const {
    return static_cast<std::size_t>(size_ < 1 ? 1 : size_) * sizeof(float);
  }
  bool is_on_device() const {
    return where_ == Where::device;
  }
  bool has_values() const {
    return where_ != Where::nowhere;
  }

  /// Copies the plane from the device to host memory, which is kept for the
  /// next time and not rewritten while nothing changed, and frees the device's.
  void offload();
  /// Copies an offloaded plane back.
  void reload();
  /// Frees the device's memory; the values are lost.
  void drop();
  /// Allocates the device's memory for values that are to be written.
  void expect();
  /// Records that the plane was written on the device.
  void changed();

  /// Returns the address for kernels, which wait for a copy that brings the
  /// plane; null: it is away.
  float* data() const;
  /// Returns the block with the newest values, for the host to read or change.
  const net::PageBlock& newest() const;
  /// Returns the block that others read: host memory if there ever was any.
  const net::PageBlock& published() const;

private:
  enum class Where : std::uint8_t { device, host, nowhere };

  bool copies_beside_kernels() const;
  void copy_to_host();
  void copy_to_device();
  void move_to(Where there);
  void leave_device(Where there);
  void return_to_device();

  std::int64_t size_;
  const net::BlockMemory* memory_; ///< null: system memory
  net::PageSharing host_sharing_;
  net::PageBlock device_;
  net::MemoryCharge charge_; ///< while it is on the device
  net::PageBlock host_;      ///< allocated by the first offload
  net::PageLock lock_;       ///< of `host_`
  bool host_is_current_ = false;
  Where where_ = Where::device;
  std::shared_ptr<net::PendingCopy> copy_; ///< the last one; null: none
  mutable bool kernels_wait_ = true;       ///< for `copy_`, if they need it
};

} // namespace troupe::models
