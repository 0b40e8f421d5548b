#include "actors/membership/trace_actor.hpp"

#include "actors/protocol/resident_memory.hpp"

#include <fmt/format.h>

#include <numeric>

namespace troupe::actors {

namespace {

void note_heartbeat(Self<HeartbeatListener, TraceState> self,
                    std::uint32_t worker, const HeartbeatReply& reply) {
  const auto count = [&](const char* what, std::uint64_t value) {
    trace::counter(self->track(),
                   trace::name(fmt::format("{} worker {}", what, worker)),
                   static_cast<double>(value));
  };
  count("memory_bytes", reply.memory_bytes);
  count("stash_bytes", reply.stash_bytes);
  if (reply.progress != self->state.last[worker].progress)
    count("progress",
          std::reduce(reply.progress.begin(), reply.progress.end()));
  if (reply.dropped_events > self->state.last[worker].dropped_events)
    count("dropped_events", reply.dropped_events);
  self->state.last[worker] = reply;
  if (worker == 0) // once per round of heartbeats
    trace::counter(self->track(), trace::name("memory_bytes master"),
                   static_cast<double>(resident_bytes()));
}

} // namespace

HeartbeatListener::behavior_type
trace_actor(Self<HeartbeatListener, TraceState> self) {
  return {
    [=](ping_atom, std::uint32_t worker, const HeartbeatReply& reply) {
      note_heartbeat(self, worker, reply);
    },
  };
}

} // namespace troupe::actors
