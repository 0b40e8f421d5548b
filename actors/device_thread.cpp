#include "actors/device_thread.hpp"

namespace troupe::actors {

DeviceThread::DeviceThread(std::string name)
  : name_(std::move(name)),
    track_(trace::track(name_, trace::TrackKind::device)),
    thread_([this] { loop(); }) {}

DeviceThread::~DeviceThread() {
  abort();
  {
    const std::lock_guard lock{mutex_};
    ending_ = true;
  }
  ready_.notify_one();
  thread_.join();
}

void DeviceThread::post(Job job) {
  {
    const std::lock_guard lock{mutex_};
    jobs_.push_back(std::move(job));
  }
  ready_.notify_one();
}

void DeviceThread::abort() {
  stop_ = true;
  const std::lock_guard lock{mutex_};
  jobs_.clear();
}

void DeviceThread::loop() {
  memory_.count_this_thread();
  while (true) {
    std::unique_lock lock{mutex_};
    ready_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (ending_)
      return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    ++progress_;
  }
}

} // namespace troupe::actors
