#include "runtime/base/suspend_signal.hpp"

#include "config/base/log.hpp"

#include <unistd.h>

#include <atomic>

namespace troupe::runtime {

namespace {

std::atomic<bool> is_to_suspend{false}; // a handler can access only statics

extern "C" void troupe_on_suspend_signal(int) {
  is_to_suspend.store(true);
}

extern "C" void troupe_on_continue_signal(int) {
  is_to_suspend.store(false);
}

} // namespace

SuspendSignal::SuspendSignal() {
  is_to_suspend.store(false);
  ::sigaction(SIGTSTP, nullptr, &before_suspend_);
  ::sigaction(SIGCONT, nullptr, &before_continue_);
  if (before_suspend_.sa_handler == SIG_IGN) // inherited: stays ignored
    return;
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = troupe_on_continue_signal;
  ::sigaction(SIGCONT, &action, nullptr);
  action.sa_handler = troupe_on_suspend_signal;
  ::sigaction(SIGTSTP, &action, nullptr);
}

SuspendSignal::~SuspendSignal() {
  ::sigaction(SIGTSTP, &before_suspend_, nullptr);
  ::sigaction(SIGCONT, &before_continue_, nullptr);
}

bool SuspendSignal::came() const {
  return is_to_suspend.load();
}

void SuspendSignal::suspend(
  const std::function<void(int signal)>& signal_workers) {
  // first, while nothing is stopped yet
  log::runtime.info("suspended until SIGCONT");
  signal_workers(SIGSTOP);
  if (came()) // otherwise SIGCONT has arrived meanwhile, and none would come
              // again
    ::kill(::getpid(), SIGSTOP);
  signal_workers(SIGCONT);
  log::runtime.info("goes on");
}

} // namespace troupe::runtime
