#include "actors/protocol/job_thread.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace troupe::actors {

struct JobThread::State {
  explicit State(std::string name_of_thread)
    : name(std::move(name_of_thread)),
      track(trace::track(name, trace::TrackKind::device)) {}

  void loop();

  std::string name;
  trace::Track track;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> progress{0};
  net::MemoryCount memory;
  std::mutex mutex;
  std::condition_variable ready;
  std::deque<Job> jobs;
  bool ending = false;
};

void JobThread::State::loop() {
  memory.count_this_thread();
  while (true) {
    std::unique_lock lock{mutex};
    ready.wait(lock, [this] { return ending || !jobs.empty(); });
    if (ending)
      return;
    const Job job = std::move(jobs.front());
    jobs.pop_front();
    lock.unlock();
    job();
    ++progress;
  }
}

JobThread::JobThread(std::string name)
  : state_(std::make_shared<State>(std::move(name))),
    thread_([state = state_] { state->loop(); }) {}

JobThread::~JobThread() {
  abort();
  {
    const std::lock_guard lock{state_->mutex};
    state_->ending = true;
  }
  state_->ready.notify_one();
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();
  else
    thread_.join();
}

void JobThread::post(Job job) {
  const auto state = state_; // the job may end this object
  {
    const std::lock_guard lock{state->mutex};
    state->jobs.push_back(std::move(job));
  }
  state->ready.notify_one();
}

void JobThread::abort() {
  state_->stop = true;
  std::deque<Job> dropped; // destroyed without the lock: a job may own others
  const std::lock_guard lock{state_->mutex};
  dropped.swap(state_->jobs);
}

const std::string& JobThread::name() const {
  return state_->name;
}

trace::Track JobThread::track() const {
  return state_->track;
}

const std::atomic<bool>& JobThread::stop_flag() const {
  return state_->stop;
}

std::atomic<std::uint64_t>& JobThread::progress() {
  return state_->progress;
}

net::MemoryCount& JobThread::memory() {
  return state_->memory;
}

} // namespace troupe::actors
