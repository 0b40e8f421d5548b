// Kernels that a device notes once and runs again: a CUDA graph. What they are
// asked for stays, what they read is what the device's memory holds by then. A
// decoding pass is a thousand small kernels, and asking a GPU for one takes
// longer than it runs; a recording is asked for at once.
//
// Among kernels that are noted nobody waits, writes to the device, or takes or
// gives back its memory, and tables of the host say nothing that differs the
// next time.
#pragma once

#include <functional>
#include <memory>

namespace troupe::models {

class Recording {
public:
  virtual ~Recording() = default;
  /// Its kernels, in the order of all others. What they point to stands where
  /// it stood.
  virtual void run() = 0;
};

/// Of one owner, which outlives what it records.
class Recorder {
public:
  virtual ~Recorder() = default;
  /// Notes what `kernels` asks for and runs none of it. Has run before with the
  /// same shapes: what it needs is there. Null: the device refused.
  virtual std::unique_ptr<Recording>
  record(const std::function<void()>& kernels) = 0;
};

} // namespace troupe::models
