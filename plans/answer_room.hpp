// How many answers a generation works on at once on a device, and so how large
// its cache of keys and values is (`rollout.kv_cache_gb`,
// `rollout.max_sequences`). With `auto` the cache takes what the plan leaves
// free on the fullest device of the call. The run, the plan check, the
// simulator and the searches all take it from here.
#pragma once

#include "plans/call_memory.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe {
struct Settings;
}

namespace troupe::plans {

struct AnswerRoom {
  std::uint32_t answers = 0;     ///< at once on a dp rank
  std::uint32_t all = 0;         ///< that the rank has to make, of a chunk
  std::uint64_t cache_bytes = 0; ///< of their keys and values, on a device

  bool operator==(const AnswerRoom&) const = default;
};
/// By call; of those that generate.
using AnswerRooms = std::map<std::string, AnswerRoom>;

/// A call that generates, where it runs.
struct AnswerCall {
  const ModelShape& shape;
  DType dtype; ///< of products
  const Placement& placement;
  const BatchSizes& sizes;

  /// On a device of `stage`, all that the call takes beside planes.
  std::uint64_t bytes(std::uint32_t answers, std::uint32_t stage) const;
  /// Of the cache, on the stage with most layers.
  std::uint64_t cache_bytes(std::uint32_t answers) const;
  /// As many answers as the settings allow, whatever memory there is.
  std::uint32_t most() const;
  /// All of them, whatever the settings allow.
  std::uint32_t all() const;
};

/// Numbers of answers at once that `auto` chooses from, the largest first:
/// `most` over 1, 1.5, 2, 3, 4, 6, 8, .., down to 1. Few, so that a search
/// tries them all, as its proof says; the numbers between save little, since
/// answers wait in rounds.
std::vector<std::uint32_t> answer_steps(std::uint32_t most);

/// What the call gets where a device of each stage has so many bytes free for
/// it; at least one answer, which may be too much. Without `cache_adapts` what
/// the settings say, whatever is free.
AnswerRoom answer_room(const AnswerCall& call,
                       std::span<const std::uint64_t> free_by_stage);
/// The most answers that fit, of any number; 0: not one.
std::uint32_t answers_that_fit(const AnswerCall& call,
                               std::span<const std::uint64_t> free_by_stage);

/// `rollout.max_sequences` of a dp rank, or what is `auto`; 0: no limit.
std::uint32_t most_answers_at_once(const Settings& settings);

/// Limits of answers and cache in `sizes` as the settings have them, on devices
/// of which plans may use so many bytes (0: not known).
void set_answer_limits(BatchSizes& sizes, const Settings& settings,
                       std::uint64_t usable);

/// What plans may use of a device: all but `cluster.memory_reserve`.
/// `cluster.device` must not be auto.
std::uint64_t usable_bytes(const Settings& settings,
                           std::uint64_t device_bytes);

} // namespace troupe::plans
