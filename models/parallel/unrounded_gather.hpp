// A unit's numbers that kernels read in fp32 (norms, biases, routers), which dp
// ranks gather beside its rounded weights. They are few and lie apart, so each
// rank packs those of its part into a buffer, where all ranks have the room of
// the one with the most.
#pragma once

#include "models/parallel/local_model.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::models {

class Backend;

class UnroundedGather {
public:
  /// Creates that of a unit without such numbers.
  UnroundedGather() = default;
  /// Plans it for a unit of `part` whose boxes begin at `offsets` (by box of
  /// the part) in a plane or window of fp32.
  UnroundedGather(const LocalModel& part, const plans::GatherBuffer& unit,
                  std::span<const std::int64_t> offsets);

  /// Returns the numbers that each rank sends; 0: there are none.
  std::int64_t count() const {
    return count_;
  }
  /// Returns the numbers of a buffer for all ranks.
  std::int64_t room() const {
    return count_ * static_cast<std::int64_t>(runs_.size());
  }
  /// Packs the numbers of a rank to its place in the buffer.
  void pack(const float* memory, std::uint32_t rank, float* buffer,
            Backend& backend) const;
  /// Takes the numbers of all ranks from the buffer.
  void unpack(const float* buffer, float* memory, Backend& backend) const;

private:
  struct Run {
    std::int64_t offset = 0; ///< in the memory
    std::int64_t count = 0;
  };

  std::vector<std::vector<Run>> runs_; ///< by rank
  std::int64_t count_ = 0;
};

} // namespace troupe::models
