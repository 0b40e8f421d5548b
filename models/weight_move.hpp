// One device's part of a move, compiled: which bytes of which other plane go
// where in its own. Planes of the same process and of processes of the same
// host are copied from where they lie; others are pulled, in pieces that are
// written to their final place, many parameters a request. Running it makes no
// plan, and from the second time on allocates nothing. A follower's move
// blends: what is copied from where it lies needs no staging, what is pulled
// does.
#pragma once

#include "config/byte_runs.hpp"
#include "config/ids.hpp"
#include "net/memory_count.hpp"
#include "net/memory_pull.hpp"
#include "plans/move_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <vector>

namespace troupe::net {
class DataPlane;
} // namespace troupe::net

namespace troupe::models {

/// Where a plane of another device is.
struct PlaneSource {
  WorkerId worker;
  std::uint64_t id = 0;             ///< of its export
  std::span<const std::byte> bytes; ///< empty: it must be pulled
};

class WeightMove {
public:
  using FindPlane = std::function<PlaneSource(Rank)>;
  /// `receives`: of one device. `plane` must outlive this.
  WeightMove(std::span<const plans::Transfer> receives, const FindPlane& find,
             net::DataPlane& plane);
  WeightMove(WeightMove&&) = default; // parts point to sources
  WeightMove(const WeightMove&) = delete;

  /// Overwrites `target`, all of the device's own plane. Throws FailureError
  /// after the last piece ended, with the first failure.
  void run(std::span<std::byte> target);
  /// Blends what arrives into `target` (blend.hpp), through at most
  /// `staging_bytes` where it pulls; a multiple of 4. They are kept.
  void blend(std::span<std::byte> target, double decay,
             std::uint64_t staging_bytes);
  /// From other devices.
  std::uint64_t moved_bytes() const {
    return moved_bytes_;
  }
  /// From other processes.
  std::uint64_t foreign_bytes(WorkerId self) const;

private:
  struct Part {
    const PlaneSource* source;
    ByteRuns runs;
  };
  using Pulls = std::list<net::MemoryPull>; ///< one a source
  /// What is pulled into the staging at once, and where it goes from there.
  struct Round {
    Pulls pulls;
    std::vector<ByteRuns> landings;
  };
  static Pulls pulls_of(std::span<const Part> parts);
  void cut_rounds(std::uint64_t staging_bytes);

  std::vector<PlaneSource> sources_;
  std::vector<Part> copies_;
  std::vector<Part> pulled_; ///< by source
  Pulls pulls_;              ///< of `pulled_`, to where it stays
  std::vector<Round> rounds_;
  std::uint64_t staging_bytes_ = 0; ///< that the rounds were cut for
  std::vector<std::byte> staging_;
  std::optional<net::MemoryCharge> staging_charge_;
  std::uint64_t size_bytes_ = 0;  ///< of all that is written
  std::uint64_t moved_bytes_ = 0; ///< .. but what the device has already
  net::DataPlane* plane_;
};

} // namespace troupe::models
