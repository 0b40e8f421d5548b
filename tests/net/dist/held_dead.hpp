// A process that keeps others from ending: a traced process that was killed
// stays until its tracer lets it go, as one does that hangs in a driver. So
// tests have children that SIGKILL does not end.
#pragma once

#include "tests/net/dist/forked_peer.hpp"
#include <sys/ptrace.h>

namespace troupe::net::testing {

class HeldDead {
public:
  /// Returns whether `pid` is held from now on, until this object ends.
  bool hold(pid_t pid) const {
    peer_.talk().say(pid);
    return peer_.talk().hear<bool>();
  }

private:
  ForkedPeer peer_{[](const Talk& talk) {
    for (;;)
      talk.say(::ptrace(PTRACE_SEIZE, talk.hear<pid_t>(), 0, 0) == 0);
  }};
};

} // namespace troupe::net::testing
