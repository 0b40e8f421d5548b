// From a few measured times to the numbers of a hardware file: what work costs
// however small it is, and at which rate it goes on. Pure arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::plans {

/// So much work (bytes, tokens) took so long.
struct TimedWork {
  double amount = 0;
  double seconds = 0;
};

/// seconds = fixed_s + amount / rate
struct WorkLine {
  double fixed_s = 0; ///< latency, launches
  double rate = 0;    ///< amount a second; 0: nothing was measured
  /// The amount that takes as long as what is fixed: the launch knee.
  double knee() const {
    return fixed_s * rate;
  }
};

/// The line with the least relative errors. Where larger work took no longer,
/// or the line would begin below zero, nothing is fixed.
WorkLine fit_work(std::span<const TimedWork> measured);

/// Sizes to measure up to `most`, four times apart, so that every knee in
/// between has sizes on both sides: first the ends, then what lies between.
std::vector<std::uint32_t> profile_sizes(std::uint32_t most);

} // namespace troupe::plans
