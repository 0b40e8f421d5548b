// The planes of one device in a file as they are in its memory: weights, and of
// a trained role the moments. Written after a step into a file that outlives
// the process (net/keeper), it is what a run continues from that has lost a
// worker. Unlike a checkpoint it fits the same plan only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace troupe::models {

class Parameters;

/// Bytes at the start of a file that tell whether it is a snapshot; its planes
/// come after them.
inline constexpr std::uint64_t plane_file_start = 4096;

/// Step counts of an engine (Engine::load_state).
struct OptimizerCounts {
  std::uint64_t optimizer_steps = 0; ///< all, skipped ones included
  std::uint64_t applied_steps = 0;   ///< for Adam's bias correction
};

/// Overwrites `file` with the planes as snapshot `id`, which is not 0; until
/// all of it is written the file is no snapshot. Returns its bytes. Throws
/// FailureError (io), as when memory is full.
std::uint64_t write_planes(int file, std::uint64_t id,
                           const Parameters& parameters,
                           const OptimizerCounts& counts);

/// Reads the planes of snapshot `id` back; nothing if the file is not that
/// snapshot or its planes have other sizes.
std::optional<OptimizerCounts> read_planes(int file, std::uint64_t id,
                                           Parameters& parameters);

/// Returns the bytes of the file that begins with `start`; nothing if that is
/// not snapshot `id`.
std::optional<std::uint64_t> plane_file_bytes(std::span<const std::byte> start,
                                              std::uint64_t id);

} // namespace troupe::models
