// How many responses a generation decodes at once per device, and so how large
// its KV cache is (`rollout.kv_cache_gb`, `rollout.max_sequences`). With `auto`
// the cache gets what the plan leaves free on the fullest device of the call.
// It is measured in responses of full length; where it has pages, more run at
// once as long as they are short. The run, the plan check, the simulator and
// the searches all get it from here.
#pragma once

#include "plans/memory/second_models.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe {
struct Settings;
}

namespace troupe::plans {

struct ResponseRoom {
  std::uint32_t responses = 0; ///< of full length at once per dp rank
  /// Most at once, which have room if they are short; on CPUs the same.
  std::uint32_t sequences = 0;
  std::uint32_t all = 0;         ///< all that the rank generates, of a chunk
  std::uint64_t cache_bytes = 0; ///< of their keys and values, per device

  bool operator==(const ResponseRoom&) const = default;
};
/// By call; only calls that generate.
using ResponseRooms = std::map<std::string, ResponseRoom>;

/// A call that generates, and its placement.
struct ResponseCall {
  const ModelShape& shape;
  DType dtype; ///< of matrix products
  const Placement& placement;
  const BatchSizes& sizes;
  SecondModels second = {}; ///< decode as many responses at once

  /// Returns all bytes besides planes that the call uses on a device of
  /// `stage`.
  std::uint64_t bytes(std::uint32_t responses, std::uint32_t stage) const;
  /// Returns the bytes of the call's own cache on the stage with most layers.
  std::uint64_t cache_bytes(std::uint32_t responses) const;
  /// Returns the most sequences at once in a cache of `responses`.
  std::uint32_t sequences(std::uint32_t responses) const;
  /// Returns as many responses as the settings allow, regardless of memory.
  std::uint32_t most() const;
  /// Returns all of them, regardless of the settings.
  std::uint32_t all() const;
};

/// Returns the numbers of responses at once that `auto` chooses from, largest
/// first: `most` divided by 1, 1.5, 2, 3, 4, 6, 8, ..., down to 1. Few, so that
/// a search tries them all, as its proof claims; numbers in between save
/// little, since responses wait in rounds.
std::vector<std::uint32_t> response_steps(std::uint32_t most);

/// Returns what the call gets if a device of each stage has this many bytes
/// free for it; at least one response, which may be too much. Without
/// `cache_adapts` the settings decide, regardless of free memory.
ResponseRoom response_room(const ResponseCall& call,
                           std::span<const std::uint64_t> free_by_stage);
/// Returns the most responses that fit, any number allowed; 0: not even one.
std::uint32_t responses_that_fit(const ResponseCall& call,
                                 std::span<const std::uint64_t> free_by_stage);

/// Returns `rollout.max_sequences` per dp rank, or the value of `auto`; 0: no
/// limit.
std::uint32_t most_responses_at_once(const Settings& settings);

/// Sets the limits of responses and cache in `sizes` from the settings, for
/// devices of which plans may use `usable` bytes (0: not known).
void set_response_limits(BatchSizes& sizes, const Settings& settings,
                         std::uint64_t usable);

/// Returns what plans may use of a device: all but
/// `cluster.device_memory_reserve` of a GPU, `cluster.memory_reserve` of a CPU
/// device. `cluster.device` must not be auto.
std::uint64_t usable_bytes(const Settings& settings,
                           std::uint64_t device_bytes);

} // namespace troupe::plans
