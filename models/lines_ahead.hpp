// Memory that will be read soon, in runs of floats: the caches are asked for it
// line by line, a share at a time, between pieces of other work. What is packed
// next comes from memory while the processor multiplies, which saves most of
// what packing costs. It reads nothing, so it changes no numbers.
#pragma once

#include <cstdint>

namespace troupe::models {

/// `count` runs of `floats`, `stride` floats between their beginnings.
struct FloatRuns {
  std::int64_t count = 0;
  std::int64_t floats = 0;
  std::int64_t stride = 0;
};

class LinesAhead {
public:
  LinesAhead() = default; ///< of nothing
  /// All lines of the runs are asked for in `shares` calls, at least one.
  LinesAhead(const float* from, const FloatRuns& runs, std::int64_t shares)
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
  static constexpr std::int64_t line = 16; // floats
  const float* run_ = nullptr;
  FloatRuns runs_;
  std::int64_t share_ = 0; // lines a call
  std::int64_t at_ = 0;    // in the first run that is left
};

} // namespace troupe::models
