#include "deferred_queue.hpp"

#include "deferred_copies.hpp"
#include "far_memory.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::testing {

using namespace models;

namespace {

using DeferredKernels = std::vector<std::function<void()>>;

/// List to which this thread's kernels are recorded; null: they run.
thread_local DeferredKernels* deferred_notes = nullptr;

} // namespace

void not_in_a_capture(const char* what) {
  if (deferred_notes != nullptr)
    throw std::logic_error(std::string(what) + " while kernels are recorded");
}

class DeferredGraph final : public GraphCapture {
public:
  DeferredGraph(DeferredQueue& late, DeferredKernels kernels)
    : late_(late),
      kernels_(std::make_shared<const DeferredKernels>(std::move(kernels))) {}

  void run() override {
    not_in_a_capture("a recording runs");
    ++late_.replayed_;
    late_.later([kernels = kernels_] {
      for (const auto& kernel : *kernels)
        kernel();
    });
  }

private:
  DeferredQueue& late_;
  std::shared_ptr<const DeferredKernels> kernels_;
};

class DeferredRecorder final : public GraphRecorder {
public:
  explicit DeferredRecorder(DeferredQueue& late) : late_(late) {}

  std::unique_ptr<GraphCapture>
  record(const std::function<void()>& kernels) override {
    DeferredKernels notes;
    deferred_notes = &notes;
    try {
      kernels();
    } catch (...) {
      deferred_notes = nullptr;
      throw;
    }
    deferred_notes = nullptr;
    ++late_.recorded_;
    return std::make_unique<DeferredGraph>(late_, std::move(notes));
  }

private:
  DeferredQueue& late_;
};

std::unique_ptr<GraphRecorder> DeferredQueue::make_recorder() {
  return std::make_unique<DeferredRecorder>(*this);
}

// Kernels of several threads run under one lock, each thread's in its order.
void DeferredQueue::run_all() {
  not_in_a_capture("somebody waits");
  const std::lock_guard lock(mutex_);
  run_until(done_ + kernels_.size());
}

void DeferredQueue::run_until(std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  if (done_ >= count)
    return;
  const FarMemory::Reach reach(deferred_memory());
  for (; done_ < count; ++done_) {
    const auto kernel = std::move(kernels_.front());
    kernels_.pop_front();
    kernel();
  }
  emptied_ += kernels_.empty() ? 1 : 0;
}

std::uint64_t DeferredQueue::later(std::function<void()> kernel) {
  if (deferred_notes != nullptr) {
    deferred_notes->push_back(std::move(kernel));
    return 0;
  }
  ++launched_;
  const std::lock_guard lock(mutex_);
  kernels_.push_back(std::move(kernel));
  return done_ + kernels_.size();
}

std::uint64_t DeferredQueue::later_with_tables(std::function<void()> kernel) {
  not_in_a_capture("numbers of the host are used");
  return later(std::move(kernel));
}

} // namespace troupe::testing
