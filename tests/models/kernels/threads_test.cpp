#include "models/kernels/threads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace troupe::models {
namespace {

class Threads : public ::testing::TestWithParam<int> {
protected:
  Threads() {
    set_compute_threads(GetParam());
  }
  ~Threads() override {
    set_compute_threads(before_);
  }

private:
  int before_ = compute_threads();
};

/// Counts how often a loop over [begin, begin + count) visits each number.
std::vector<int> visits(std::int64_t begin, std::int64_t count,
                        std::int64_t grain) {
  std::vector<int> found(static_cast<std::size_t>(count));
  parallel_for(begin, begin + count, grain,
               [&](std::int64_t from, std::int64_t to) {
                 for (std::int64_t i = from; i < to; ++i)
                   ++found[static_cast<std::size_t>(i - begin)];
               });
  return found;
}

TEST_P(Threads, ALoopVisitsEveryIndexOnce) {
  for (const std::int64_t count : {0, 1, 2, 3, 5, 100})
    for (const std::int64_t grain : {0, 1, 7, 1000})
      EXPECT_EQ(visits(3, count, grain),
                std::vector<int>(static_cast<std::size_t>(count), 1))
        << count << " by " << grain;
}

TEST_P(Threads, ALoopRethrowsAndTheNextLoopRuns) {
  EXPECT_THROW(parallel_for(0, 8, 1,
                            [](std::int64_t, std::int64_t to) {
                              if (to == 8)
                                throw std::runtime_error("the last part");
                            }),
               std::runtime_error);
  EXPECT_EQ(visits(0, 8, 1), std::vector<int>(8, 1));
}

TEST_P(Threads, ANestedLoopStaysInItsThread) {
  std::atomic<int> loops = 0;
  std::atomic<bool> dealt = false;
  parallel_for(0, 8, 1, [&](std::int64_t, std::int64_t) {
    EXPECT_EQ(compute_threads(), 1);
    const int own = compute_thread();
    ++loops;
    parallel_for(0, 8, 1, [&](std::int64_t from, std::int64_t to) {
      if (compute_thread() != own || from != 0 || to != 8)
        dealt = true;
    });
  });
  EXPECT_EQ(loops, std::min(8, GetParam()));
  EXPECT_FALSE(dealt);
}

// Devices of a process loop at the same time, each with its own threads.
TEST_P(Threads, ConcurrentLoopsDoNotInterfere) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> devices;
  for (int i = 0; i < 3; ++i)
    devices.emplace_back([&] {
      for (int round = 0; round < 200; ++round)
        if (visits(0, 16, 1) != std::vector<int>(16, 1))
          ++wrong;
    });
  for (std::thread& device : devices)
    device.join();
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Counts, Threads, ::testing::Values(1, 2, 3));

} // namespace
} // namespace troupe::models
