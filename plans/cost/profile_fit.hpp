// Turns a few measured times into the numbers of a hardware file: a fixed cost
// that even the smallest work has, and the rate beyond it. Pure arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::plans {

/// An amount of work (bytes, tokens) and the time it took.
struct TimedWork {
  double amount = 0;
  double seconds = 0;
};

/// seconds = fixed_s + amount / rate
struct WorkLine {
  double fixed_s = 0; ///< latency, launches
  double rate = 0;    ///< amount per second; 0: nothing was measured
  /// Returns the amount that takes as long as the fixed part: the launch knee.
  double knee() const {
    return fixed_s * rate;
  }
};

/// Fits the line with the least relative errors. Nothing is fixed if larger
/// work took no longer, or if the line would start below zero.
WorkLine fit_work(std::span<const TimedWork> measured);

/// Returns sizes to measure up to `most`, a factor of four apart, so that every
/// knee in between has sizes on both sides: first the ends, then those between.
std::vector<std::uint32_t> profile_sizes(std::uint32_t most);

} // namespace troupe::plans
