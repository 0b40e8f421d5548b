// Wakes a thread that waits in poll(): a descriptor that becomes readable after
// ring(). Thread-safe.
#pragma once

namespace troupe::net {

class WakeEvent {
public:
  WakeEvent();
  ~WakeEvent();
  WakeEvent(const WakeEvent&) = delete;
  WakeEvent& operator=(const WakeEvent&) = delete;

  void ring() const;
  /// Clears all rings so far.
  void clear() const;
  int descriptor() const {
    return descriptor_;
  }

private:
  int descriptor_;
};

} // namespace troupe::net
