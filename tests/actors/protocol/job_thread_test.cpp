#include "actors/protocol/job_thread.hpp"

#include <gtest/gtest.h>

#include <future>
#include <memory>

namespace troupe::actors {
namespace {

/// Owns a thread, as a worker's context does.
struct Owner {
  JobThread thread{"device 0"};
};

TEST(JobThread, AJobMayHoldTheLastReferenceToItsThread) {
  std::promise<void> released;
  std::promise<void> done;
  auto owner = std::make_shared<Owner>();
  owner->thread.post(
    [owner, wait = released.get_future().share(), &done]() mutable {
      wait.wait();
      owner.reset(); // the last one: ends the thread that runs this job
      done.set_value();
    });
  owner.reset();
  released.set_value();
  done.get_future().wait();
}

TEST(JobThread, JobsRunInOrderAndQueuedOnesAreDroppedAtTheEnd) {
  std::promise<void> begun;
  std::promise<void> released;
  int ran = 0;
  {
    JobThread thread{"host 0"};
    thread.post([&] {
      ++ran;
      begun.set_value();
      released.get_future().wait();
    });
    begun.get_future().wait();
    thread.post([&] { ran += 10; });
    thread.abort();
    released.set_value();
  }
  EXPECT_EQ(ran, 1);
}

} // namespace
} // namespace troupe::actors
