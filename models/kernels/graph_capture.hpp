// Capture and replay of a device's kernels: a CUDA graph. Arguments are fixed
// at capture; kernels read what device memory holds at replay. A decoding pass
// is a thousand small kernels, and launching one on a GPU takes longer than it
// runs; a captured graph is one launch.
//
// While capturing: no waits, no host-to-device writes, no allocation or freeing
// of device memory; host tables must not change between replays.
#pragma once

#include <functional>
#include <memory>

namespace troupe::models {

class GraphCapture {
public:
  virtual ~GraphCapture() = default;
  /// Replays the kernels, ordered among all others of the device. Memory that
  /// they point to must still be at the same address.
  virtual void run() = 0;
};

/// The recorder of one owner, which outlives its captures.
class GraphRecorder {
public:
  virtual ~GraphRecorder() = default;
  /// Captures what `kernels` launches without running it; `kernels` has run
  /// before with the same shapes, so its memory is allocated. Returns null if
  /// the device refused.
  virtual std::unique_ptr<GraphCapture>
  record(const std::function<void()>& kernels) = 0;
};

} // namespace troupe::models
