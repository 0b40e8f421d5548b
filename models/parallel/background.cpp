#include "models/parallel/background.hpp"

#include <utility>

namespace troupe::models {

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable())
    thread_.join();
}

std::uint64_t Background::run(std::function<void()> job) {
  if (!thread_.joinable())
    thread_ = std::thread([this] { work(); });
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return ++given_;
}

void Background::wait(std::uint64_t job) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= job; });
  if (failure_)
    std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Background::work() {
  at_start_();
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closing_ || !jobs_.empty(); });
    if (jobs_.empty())
      return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    const bool skip = failure_ != nullptr;
    lock.unlock();
    std::exception_ptr thrown;
    try {
      if (!skip)
        job();
    } catch (...) { // rethrown by wait()
      thrown = std::current_exception();
    }
    lock.lock();
    if (thrown)
      failure_ = thrown;
    ++done_;
    changed_.notify_all();
  }
}

} // namespace troupe::models
