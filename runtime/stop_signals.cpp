#include "runtime/stop_signals.hpp"

#include "config/error.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

namespace troupe::runtime {

namespace {

// a handler can reach nothing but statics
std::atomic<int> signals_event_fd{-1};
std::atomic<int> signals_seen{0};
std::atomic<int> signals_first{0};

void signals_wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written
    = ::write(signals_event_fd.load(), &one, sizeof one);
}

extern "C" void troupe_on_stop_signal(int number) {
  const int saved_errno = errno;
  if (signals_seen.fetch_add(1) > 0)
    ::_exit(number == SIGINT ? static_cast<int>(ExitCode::interrupted)
                             : static_cast<int>(ExitCode::stopped));
  signals_first.store(number);
  signals_wake();
  errno = saved_errno;
}

struct sigaction before_term {
}, before_interrupt{};

void set_handler() {
  struct sigaction action {};
  action.sa_handler = troupe_on_stop_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, &before_term);
  ::sigaction(SIGINT, &action, &before_interrupt);
}

void restore_handlers() {
  ::sigaction(SIGTERM, &before_term, nullptr);
  ::sigaction(SIGINT, &before_interrupt, nullptr);
}

} // namespace

StopSignals::StopSignals(std::function<void(int signal)> on_first) {
  TROUPE_CHECK(signals_event_fd.load() < 0, "one StopSignals at a time");
  signals_seen.store(0);
  signals_first.store(0);
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
