#include "net/collectives/stream_watchdog.hpp"

#include "net/base/defaults.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::net {

namespace {

constexpr unsigned event_without_time = 2; // cudaEventDisableTiming
constexpr int event_not_ready = 600;
/// Calls after which the member itself looks for events to reuse.
constexpr std::size_t many_watched_calls = 64;

} // namespace

StreamWatchdog::StreamWatchdog(Spec spec, const NcclLibrary& library)
  : spec_(std::move(spec)),
    library_(library) {}

StreamWatchdog::~StreamWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable())
    thread_.join();
  for (const WatchedCall& call : calls_)
    idle_.insert(idle_.end(), {call.reached, call.ended});
  for (CudaEvent event : idle_)
    library_.cuda.events.drop(
      event); // CUDA keeps what a stream still waits for
}

WatchedCall StreamWatchdog::next(const CallMark& mark) {
  const std::lock_guard lock(mutex_);
  if (calls_.size() >= many_watched_calls && !has_failed_)
    forget_ended();
  WatchedCall call{.number = last_number_ + 1, .mark = mark};
  call.reached = take_event();
  call.ended = take_event();
  return call;
}

void StreamWatchdog::watch(const WatchedCall& call) {
  const std::lock_guard lock(mutex_);
  last_number_ = call.number;
  calls_.push_back(call);
  if (!thread_.joinable())
    thread_ = std::thread([this] { work(); });
  if (calls_.size() == 1) // it sleeps while there are none
    changed_.notify_all();
}

CudaEvent StreamWatchdog::end_of(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  for (const WatchedCall& call : calls_)
    if (call.number == number)
      return call.ended;
  return nullptr;
}

CudaEvent StreamWatchdog::take_event() {
  CudaEvent event = nullptr;
  if (!idle_.empty()) {
    event = idle_.back();
    idle_.pop_back();
    return event;
  }
  const int result = library_.cuda.events.make(&event, event_without_time);
  if (result == 0)
    return event;
  library_.cuda.clear_error();
  throw FailureError{{Errc::io, spec_.who,
                      fmt::format("making an event: CUDA error {}", result),
                      ""}};
}

int StreamWatchdog::query(CudaEvent event) const {
  const int result = library_.cuda.events.query(event);
  if (result != 0)
    library_.cuda.clear_error();
  return result;
}

/// Calls end in order: NCCL orders those of a communicator.
void StreamWatchdog::forget_ended() {
  while (!calls_.empty() && query(calls_.front().ended) == 0) {
    const WatchedCall& first = calls_.front();
    idle_.insert(idle_.end(), {first.reached, first.ended});
    calls_.pop_front();
  }
}

void StreamWatchdog::work() {
  library_.cuda.set_device(spec_.device); // a thread begins with the first
  std::unique_lock lock(mutex_);
  while (!closing_) {
    if (!has_failed_)
      forget_ended();
    if (calls_.empty() || has_failed_) {
      changed_.wait(
        lock, [&] { return closing_ || (!calls_.empty() && !has_failed_); });
      continue;
    }
    auto failure = overdue();
    const std::string name = to_string(calls_.front().mark);
    lock.unlock();
    if (!failure)
      failure = spec_.failure(name);
    if (failure)
      spec_.abort(*failure);
    lock.lock();
    has_failed_ = failure.has_value();
    changed_.wait_for(lock, kLivenessSlice, [&] { return closing_; });
  }
}

std::optional<Failure> StreamWatchdog::overdue() {
  const WatchedCall& first = calls_.front();
  if (std::exchange(first_, first.number) != first.number)
    since_.reset();
  const int reached = query(first.reached);
  if (reached == event_not_ready)
    return std::nullopt;
  const auto late = [&](Errc code, const std::string& what) {
    return Failure{code, spec_.who,
                   fmt::format("{}, call {} on streams: {}",
                               to_string(first.mark), first.number, what),
                   ""};
  };
  if (reached != 0)
    return late(Errc::io, fmt::format("CUDA error {}", reached));
  const auto now = Clock::now();
  if (!since_)
    since_ = now;
  if (now - *since_ < spec_.progress_deadline)
    return std::nullopt;
  return late(Errc::deadline, fmt::format("no end within {} ms",
                                          spec_.progress_deadline.count()));
}

} // namespace troupe::net
