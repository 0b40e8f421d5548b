// One device's part of a move, compiled: which bytes of which other plane go
// where in its own. Planes of the same process and of processes on the same
// host are copied directly, from GPU to GPU too; others are pulled, in pieces
// that are written to their final place, many parameters per request. Running
// it computes no plan, and from the second time on allocates nothing. The move
// of an EMA role is an EMA update: direct copies need no staging, pulled bytes
// do, and so do those that are pulled for a GPU.
#pragma once

#include "config/base/byte_runs.hpp"
#include "config/base/ids.hpp"
#include "net/base/memory_count.hpp"
#include "net/data_plane/memory_pull.hpp"
#include "plans/weights/move_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <vector>

namespace troupe::net {
struct BlockMemory;
class DataPlane;
} // namespace troupe::net

namespace troupe::models {

/// Location of another device's plane.
struct PlaneSource {
  WorkerId worker;
  std::uint64_t id = 0;                     ///< id of its published block
  std::span<const std::byte> bytes;         ///< empty: it must be pulled
  const net::BlockMemory* memory = nullptr; ///< of `bytes`; null: the host's
};

class WeightMove {
public:
  using FindPlane = std::function<PlaneSource(Rank)>;
  /// Compiles the transfers that one device receives. `plane` must outlive this
  /// object.
  WeightMove(std::span<const plans::Transfer> receives, const FindPlane& find,
             net::DataPlane& plane);
  WeightMove(WeightMove&&) = default; // parts point to sources
  WeightMove(const WeightMove&) = delete;

  /// Overwrites `target`, the whole of the device's own plane. Throws
  /// FailureError with the first failure, after the last piece has ended.
  void run(std::span<std::byte> target);
  /// Overwrites `target`, the device's own plane in its memory, likewise.
  /// Pulled bytes go through staging memory as in `ema_update`.
  void run(const net::BlockMemory& device, std::span<std::byte> target,
           std::uint64_t staging_bytes);
  /// Applies the EMA update with the incoming weights to `target`
  /// (ema_update.hpp). Pulled bytes go through staging memory of at most
  /// `staging_bytes`, a multiple of 4, which is kept.
  void ema_update(std::span<std::byte> target, double decay,
                  std::uint64_t staging_bytes);
  /// Returns the bytes received from other devices.
  std::uint64_t moved_bytes() const {
    return moved_bytes_;
  }
  /// Returns the bytes received from other processes.
  std::uint64_t foreign_bytes(WorkerId self) const;

private:
  /// Bytes of one source.
  struct Part {
    const PlaneSource* source;
    std::vector<ByteRuns> runs;
  };
  using Pulls = std::list<net::MemoryPull>; ///< one per source
  /// Parts pulled into the staging memory at once, and their final places.
  struct Round {
    Pulls pulls;
    std::vector<ByteRuns> landings;
  };
  static void add(std::vector<Part>& parts, const PlaneSource& source,
                  const ByteRuns& runs);
  static Pulls pulls_of(std::span<const Part> parts);
  void cut_rounds(std::uint64_t staging_bytes);
  template <class Land>
  void pull_rounds(std::uint64_t staging_bytes, Land land);

  std::vector<PlaneSource> sources_;
  std::vector<Part> copies_; ///< one per source
  std::vector<Part> pulled_; ///< likewise
  Pulls pulls_;              ///< requests for `pulled_`, to their final place
  std::vector<Round> rounds_;
  std::uint64_t staging_bytes_ = 0; ///< size that the rounds were cut for
  std::vector<std::byte> staging_;
  std::optional<net::MemoryCharge> staging_charge_;
  std::uint64_t size_bytes_ = 0;  ///< of everything written
  std::uint64_t moved_bytes_ = 0; ///< without what the device had already
  net::DataPlane* plane_;
};

} // namespace troupe::models
