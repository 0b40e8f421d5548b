// What a shard does on its device thread: plain functions over a Shard, without
// actors. They throw; the shard actor turns that into failures.
#pragma once

#include "actors/shard_actor.hpp"

namespace troupe::actors {

LoadDone load_shard(Shard& shard, const LoadOrder& order);
/// All but generation (shard_generate.hpp).
RunDone run_shard(Shard& shard, StepId step, const RunOrder& order,
                  const net::Rows& rows);
MoveDone move_shard(Shard& shard, StepId step, const MoveOrder& order);
/// Brings planes back for a call, takes them to host memory after it, or drops
/// the weights.
LifeDone move_planes(Shard& shard, StepId step, const LifeOrder& order);
/// After loading: what calls bring back goes to host memory.
void begin_life(Shard& shard);
/// Bytes of the replica's planes on this device; also an event of the trace,
/// as is the device's memory.
std::uint64_t count_planes(Shard& shard);
/// What its device took while one of these ran: of a thread that only they run
/// on.
std::vector<PeakMemory> peaks_of(const Shard& shard);
CopyDone copy_shard(Shard& shard, StepId step, const CopyOrder& order);
/// On the worker's writer thread.
WriteDone write_shard(Shard& shard, StepId step, const WriteOrder& order);

models::RunContext run_context(Shard& shard, StepId step);
/// Of the devices that have the same samples, the one whose results count.
bool gives_results(const Shard& shard);
/// Bookkeeping of a finished call: what was written, now in the stash.
RunDone stash_outputs(WorkerContext& worker, StepId step,
                      const plans::Call& call, net::Rows outputs);
/// In the trace, inside the slice of a task: what it `reads` or `writes`, a
/// slice without length for each key, whose amount is bytes.
void trace_rows(trace::Track track, std::string_view verb, StepId step,
                const net::Rows& rows);
/// Keys as the call's function knows them, and back (plans::Rename).
net::Rows rename_in(const plans::Call& call, net::Rows rows);
net::Rows rename_out(const plans::Call& call, net::Rows rows);
std::vector<SumPart> to_parts(const models::Sums& sums);
models::Sums to_sums(const std::vector<SumPart>& parts);
/// Steady clock of this process, nanoseconds; the clock of the trace.
std::uint64_t now_ns();

} // namespace troupe::actors
