// Helpers of the benchmarks of net: a clock, medians, and peers in other
// processes.
#pragma once

#include "tests/net/dist/forked_peer.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace troupe::bench {

using net::testing::ForkedPeer;
using net::testing::Talk;

inline double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
    .count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

} // namespace troupe::bench
