#include "runtime/launch/stop_signals.hpp"

#include "config/base/error.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <utility>

namespace troupe::runtime {

namespace {

// a handler can access only statics
std::atomic<int> signals_event_fd{-1};
std::atomic<int> signals_first{0};
std::atomic<std::int64_t> signals_first_ns{0};

/// Time in which further SIGTERMs repeat the first one: Slurm and Kubernetes
/// signal a job's shell, which passes the signal on, and everything under it.
constexpr std::int64_t one_request_ns = 1'000'000'000;

std::int64_t signals_now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000L + now.tv_nsec;
}

/// Returns whether a later signal is part of the same request as the first,
/// whose handler may still run on another thread.
bool repeats_first_signal(int number) {
  const std::int64_t first_ns = signals_first_ns.load();
  return number == SIGTERM && signals_first.load() == SIGTERM
         && (first_ns == 0 || signals_now_ns() - first_ns < one_request_ns);
}

void signals_wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written
    = ::write(signals_event_fd.load(), &one, sizeof one);
}

extern "C" void troupe_on_ignored_signal(int /*number*/) {}

extern "C" void troupe_on_stop_signal(int number) {
  const int saved_errno = errno;
  if (number == SIGHUP) // a closed terminal is no Ctrl-C
    number = SIGTERM;
  int none = 0;
  if (signals_first.compare_exchange_strong(none, number)) {
    signals_first_ns.store(signals_now_ns());
    signals_wake();
  } else if (!repeats_first_signal(number)) {
    ::_exit(number == SIGINT ? static_cast<int>(ExitCode::interrupted)
                             : static_cast<int>(ExitCode::stopped));
  }
  errno = saved_errno;
}

struct sigaction before_term {
}, before_interrupt{}, before_hangup{};

void set_handler() {
  struct sigaction action {};
  action.sa_handler = troupe_on_stop_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, &before_term);
  ::sigaction(SIGINT, &action, &before_interrupt);
  ::sigaction(SIGHUP, &action, &before_hangup);
  if (before_hangup.sa_handler == SIG_IGN) // nohup: the run is to go on
    ::sigaction(SIGHUP, &before_hangup, nullptr);
}

void restore_handlers() {
  ::sigaction(SIGTERM, &before_term, nullptr);
  ::sigaction(SIGINT, &before_interrupt, nullptr);
  ::sigaction(SIGHUP, &before_hangup, nullptr);
}

} // namespace

void leave_term_to_master() {
  struct sigaction action {};
  action.sa_handler = troupe_on_ignored_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
}

StopSignals::StopSignals(std::function<void(int signal)> on_first) {
  TROUPE_CHECK(signals_event_fd.load() < 0, "one StopSignals at a time");
  signals_first.store(0);
  signals_first_ns.store(0);
  signals_event_fd.store(::eventfd(0, EFD_CLOEXEC));
  TROUPE_CHECK(signals_event_fd.load() >= 0, "eventfd");
  watcher_ = std::thread([on_first = std::move(on_first)] {
    std::uint64_t count = 0;
    while (::read(signals_event_fd.load(), &count, sizeof count) < 0
           && errno == EINTR) {
    }
    if (const int number = signals_first.load(); number != 0)
      on_first(number);
  });
  set_handler();
}

StopSignals::~StopSignals() {
  restore_handlers();
  signals_wake();
  watcher_.join();
  ::close(signals_event_fd.exchange(-1));
}

} // namespace troupe::runtime
