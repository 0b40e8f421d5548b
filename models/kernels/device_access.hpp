// How the host uses a device: its memory, which it reads and writes through
// `read`, `change` and `write` only, when it waits, and the capture of kernels.
// A part of backend.hpp.
#pragma once

#include "config/base/dtype.hpp"
#include "models/kernels/graph_capture.hpp"
#include "models/kernels/pending_read.hpp"
#include "net/base/block_memory.hpp"
#include "net/base/host_copy.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe::models {

class DeviceAccess {
public:
  virtual ~DeviceAccess() = default;

  /// Returns the memory that numbers are allocated from; null: system memory.
  virtual const net::BlockMemory* memory() const = 0;
  /// Returns the type that activations, weights of products and cached keys and
  /// values are stored in where products take `operands`.
  virtual DType storage(DType /*operands*/) const {
    return DType::f32;
  }
  /// Makes the device that of the calling thread. Each thread calls this before
  /// it uses the backend: a thread that did not would open every other GPU too.
  virtual void enter() {}
  /// Returns when all kernels so far are done. May be called from any thread.
  virtual void wait() = 0;
  /// Returns whether kernels run after their calls have returned.
  virtual bool is_asynchronous() const {
    return false;
  }
  virtual void write(const void* from, void* to, std::size_t size_bytes) = 0;
  /// Copies numbers of the device, after all kernels so far, for the host to
  /// read later.
  virtual std::unique_ptr<PendingRead> read_later(const float* from,
                                                  std::int64_t count) {
    return std::make_unique<ArrivedNumbers>(read(from, count).bytes());
  }
  /// Waits, and returns numbers of the device for the host to read.
  net::HostRead read(const float* from, std::int64_t count) {
    wait();
    return {memory(), from, static_cast<std::size_t>(count) * sizeof(float)};
  }
  /// Waits, and returns numbers of the device for the host to change.
  net::HostWrite change(float* x, std::int64_t count,
                        net::OldContent old = net::OldContent::needed) {
    wait();
    return {memory(), x, static_cast<std::size_t>(count) * sizeof(float), old};
  }
  /// Returns a recorder for graph capture, or null.
  virtual std::unique_ptr<GraphRecorder> recorder() {
    return nullptr;
  }
};

} // namespace troupe::models
