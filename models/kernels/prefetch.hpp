// Software prefetch of runs of floats, a share at a time between pieces of
// other work. What is packed next arrives from memory while the processor
// multiplies, which hides most of the cost of packing. Nothing is read, so no
// numbers change.
#pragma once

#include <cstdint>

namespace troupe::models {

/// `count` runs of `floats`, `stride` floats between their starts.
struct FloatRuns {
  std::int64_t count = 0;
  std::int64_t floats = 0;
  std::int64_t stride = 0;
};

class Prefetch {
public:
  Prefetch() = default; ///< prefetches nothing
  /// Prepares to prefetch all lines of the runs in `shares` calls, at least
  /// one.
  Prefetch(const float* from, const FloatRuns& runs, std::int64_t shares)
    : run_(from),
      runs_(runs),
      share_((runs.count * ((runs.floats + line - 1) / line) + shares - 1)
             / shares) {}

  void ask() {
    for (std::int64_t i = 0; i < share_ && runs_.count > 0; ++i) {
      __builtin_prefetch(run_ + at_, /*rw=*/0, /*locality=*/2);
      at_ += line;
      if (at_ < runs_.floats)
        continue;
      at_ = 0;
      run_ += runs_.stride;
      --runs_.count;
    }
  }
  bool done() const {
    return runs_.count == 0;
  }

private:
  static constexpr std::int64_t line = 16; // in floats
  const float* run_ = nullptr;
  FloatRuns runs_;
  std::int64_t share_ = 0; // lines per call
  std::int64_t at_ = 0;    // in the first remaining run
};

} // namespace troupe::models
