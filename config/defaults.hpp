// Every timing and size constant of the program in one place, each with its
// unit in the name and the reason for its value. Settings have their defaults
// in settings.hpp.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe::defaults {

using namespace std::chrono_literals;

// -- liveness (DESIGN 9) ------------------------------------------------------

/// How often a node and the master tell each other that they live: a suspect
/// then missed three in a row.
inline constexpr auto heartbeat_period = 500ms;
/// Silent for so long: shown as suspect. Longer than a loaded host's hiccup.
inline constexpr auto suspect_after = 1500ms;
/// `cluster.silence_s: auto` on one host. A worker that is silent for so long
/// is declared dead and killed; one that does not hear the master exits.
inline constexpr auto dead_after = 10s;
/// The same between hosts: bonds and switches come back within it, and TCP has
/// sent what was lost again 25.4 s after a link went down (12.6 s before that).
inline constexpr auto dead_after_between_hosts = 30s;
/// The other workers of a broken run are killed; all of it ends in 2 s.
inline constexpr auto kill_workers_within = 1500ms;

/// A process without a free descriptor for so long ends: one look may fall into
/// a burst, or another program may fill the host's table for a moment, and a
/// healthy run gets over both.
inline constexpr auto open_files_full_for = 3s;

// -- start and end ------------------------------------------------------------

/// All workers must have joined by then; loading libtorch takes seconds on a
/// cold disk.
inline constexpr auto workers_join_within = 60s;
/// One TCP connection attempt inside a cluster.
inline constexpr auto connect_within = 10s;
/// Workers get this long to end by themselves at shutdown.
inline constexpr auto shutdown_grace = 5s;
/// A master that has told everything to end exits after so long, whatever it
/// still waits for.
inline constexpr auto ends_within = 10s;

// -- waits (I7: every wait has a deadline on progress)
// -------------------------

/// A task without any progress (no layer, token or byte) for so long fails.
inline constexpr auto progress_deadline = 120s;
/// A collective whose peers make no progress; above the slowest legal skew
/// between ranks of one task, below `progress_deadline` so that its name shows.
inline constexpr auto collective_deadline = 90s;
/// A pull of rows or weights during which no byte arrived.
inline constexpr auto pull_deadline = 60s;
/// After so long in one wait, the trace and log say who waits for whom.
inline constexpr auto stall_report_after = 20s;

// -- sizes --------------------------------------------------------------------

/// Header of one data-plane frame: names and lengths only. Checked before
/// allocation.
inline constexpr std::size_t frame_header_limit_bytes = std::size_t{16} << 20;
/// Payload of one data-plane frame; a peer that announces more is refused.
inline constexpr std::uint64_t frame_payload_limit_bytes = std::uint64_t{64}
                                                           << 30;
/// One piece of a pipelined weight move: large enough for full link speed,
/// small enough that staging stays bounded.
inline constexpr std::size_t move_chunk_bytes = std::size_t{16} << 20;
/// Most that a device keeps of weights that wait to be blended in.
inline constexpr std::uint64_t move_staging_bytes = std::uint64_t{64} << 20;
/// Vectors start on cache lines (and AVX-512 registers).
inline constexpr std::size_t buffer_alignment_bytes = 64;
/// Run tokens: 256 random bits.
inline constexpr std::size_t token_bytes = 32;
/// Packed tokens of one forward pass where neither settings nor plan say: keeps
/// logits of a 32k vocabulary near 1 GB in fp32.
inline constexpr std::int64_t micro_batch_tokens = 8192;
/// A settings file beyond this is a mistake.
inline constexpr std::size_t settings_file_limit_bytes = std::size_t{4} << 20;

// -- tracing (DESIGN 10) ------------------------------------------------------

/// Events a thread can record between two drains before it drops: at 48 bytes
/// 768 KiB a thread.
inline constexpr std::size_t trace_ring_events = std::size_t{1} << 14;
/// How often the drainer looks; a half-full ring wakes it at once. Also what a
/// killed process loses at most.
inline constexpr auto trace_drain_period = 50ms;
/// Distinct tracks or names; more points to a name made of numbers.
inline constexpr std::size_t trace_names_limit = std::size_t{1} << 16;

} // namespace troupe::defaults
