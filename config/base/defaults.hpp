// All timing and size constants of the program in one place, each with its unit
// in the name and the reason for its value. Defaults of settings are in
// settings.hpp.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe::defaults {

using namespace std::chrono_literals;

// -- liveness -----------------------------------------------------------------

/// Period of heartbeats between a node and the master: a suspect missed three
/// in a row.
inline constexpr auto heartbeat_period = 500ms;
/// Silence after which a worker is shown as suspect. Longer than a hiccup of a
/// loaded host.
inline constexpr auto suspect_after = 1500ms;
/// `cluster.silence_s: auto` on one host. A worker that is silent for this long
/// is declared dead and killed; one that does not hear from the master exits.
inline constexpr auto dead_after = 10s;
/// `silence_s: auto` between hosts: bonds and switches recover within it, and
/// TCP retransmits lost segments 12.6 s and 25.4 s after a link went down.
inline constexpr auto dead_after_between_hosts = 30s;
/// Time in which the other workers of a failed run are killed; the whole run
/// ends within 2 s.
inline constexpr auto kill_workers_within = 1500ms;

/// A process without a free descriptor for this long ends: a single check may
/// fall into a burst, or another program may fill the host's table for a
/// moment, and a healthy run survives both.
inline constexpr auto open_files_full_for = 3s;

// -- start and end ------------------------------------------------------------

/// Time in which all workers must have joined; loading libtorch takes seconds
/// from a cold disk.
inline constexpr auto workers_join_within = 60s;
/// Time after the first attempt without all its nodes (cluster.lost_node:
/// wait), twice as long after each further one up to the other.
inline constexpr std::chrono::seconds first_wait_for_node = 10s;
inline constexpr std::chrono::seconds longest_wait_for_node = 5min;
/// Time between two probes of hosts that a run does without.
inline constexpr auto probe_period = 10s;
/// Limit of one TCP connection attempt inside a cluster.
inline constexpr auto connect_within = 10s;
/// Time that workers get to end by themselves at shutdown.
inline constexpr auto shutdown_grace = 5s;
/// Time that a program of `metrics` gets to end by itself after the last line:
/// trackers start slowly, and send what they hold at the end.
inline constexpr std::chrono::seconds metrics_grace = 60s;
/// A master that has asked everything to end exits after this long, whatever it
/// still waits for.
inline constexpr auto ends_within = 10s;

// -- waits (I7: every wait has a deadline on progress)
// -------------------------

/// A task without any progress (no layer, token or byte) for this long fails.
inline constexpr auto progress_deadline = 120s;
/// Limit of a collective whose peers make no progress; above the largest legal
/// skew between ranks of one task, below `progress_deadline` so that the error
/// names the collective.
inline constexpr auto collective_deadline = 90s;
/// Limit of a pull of rows or weights during which no byte arrives.
inline constexpr auto pull_deadline = 60s;
/// After this long in one wait, trace and log report who waits for whom.
inline constexpr auto stall_report_after = 20s;

// -- sizes --------------------------------------------------------------------

/// Limit of the header of one data-plane frame: names and lengths only. Checked
/// before allocation.
inline constexpr std::size_t frame_header_limit_bytes = std::size_t{16} << 20;
/// Limit of the payload of one data-plane frame; a peer that announces more is
/// refused.
inline constexpr std::uint64_t frame_payload_limit_bytes = std::uint64_t{64}
                                                           << 30;
/// Size of one piece of a pipelined weight move: large enough for full link
/// speed, small enough that staging stays bounded.
inline constexpr std::size_t move_chunk_bytes = std::size_t{16} << 20;
/// Alignment of vectors: cache lines (and AVX-512 registers).
inline constexpr std::size_t buffer_alignment_bytes = 64;
/// Size of run tokens: 256 random bits.
inline constexpr std::size_t token_bytes = 32;
/// Packed tokens of one forward pass where neither settings nor plan give a
/// number: keeps logits of a 32k vocabulary near 1 GB in fp32.
inline constexpr std::int64_t micro_batch_tokens = 8192;
/// Logits (fp32) that are computed at a time where not all are kept: 16 MiB,
/// the cache of a CPU; 2 GiB on a GPU, 4096 rows of a vocabulary of 128k, since
/// each piece rounds and adds the whole head.
inline constexpr std::int64_t logits_at_once = std::int64_t{1} << 22;
inline constexpr std::int64_t logits_at_once_on_gpu = std::int64_t{1} << 29;
/// Rows of experts that are gathered for a product at a time: those of one
/// expert on a CPU, which has no use for more; on a GPU as many as fill it in
/// one launch, 128 MiB of bf16 with 2048 numbers in a row.
inline constexpr std::int64_t grouped_rows_at_once = 0;
inline constexpr std::int64_t grouped_rows_at_once_on_gpu = std::int64_t{1}
                                                            << 15;
/// A larger settings file is a mistake.
inline constexpr std::size_t settings_file_limit_bytes = std::size_t{4} << 20;

// -- tracing -----------------------------------------------------------------

/// Events that a thread can record between two drains before it drops: at 48
/// bytes 768 KiB per thread.
inline constexpr std::size_t trace_ring_events = std::size_t{1} << 14;
/// Period of the drainer; a half-full ring wakes it at once. Also the most that
/// a killed process loses.
inline constexpr auto trace_drain_period = 50ms;
/// Limit of distinct tracks or names; exceeding it points to names made of
/// numbers.
inline constexpr std::size_t trace_names_limit = std::size_t{1} << 16;

} // namespace troupe::defaults
