#include "runtime/suspend_signal.hpp"

#include <unistd.h>

#include <atomic>

namespace troupe::runtime {

namespace {

std::atomic<bool> suspend_signal_came{false}; // a handler reaches only statics

extern "C" void troupe_on_suspend_signal(int) {
  suspend_signal_came.store(true);
}

} // namespace

SuspendSignal::SuspendSignal() {
  suspend_signal_came.store(false);
  ::sigaction(SIGTSTP, nullptr, &before_);
  if (before_.sa_handler == SIG_IGN) // whoever started us wants it so
    return;
  struct sigaction action {};
  action.sa_handler = troupe_on_suspend_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTSTP, &action, nullptr);
}

SuspendSignal::~SuspendSignal() {
  ::sigaction(SIGTSTP, &before_, nullptr);
}

bool SuspendSignal::came() {
  return suspend_signal_came.exchange(false);
}

void stop_this_process() {
  ::kill(::getpid(), SIGSTOP);
}

} // namespace troupe::runtime
