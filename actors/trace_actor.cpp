#include "actors/trace_actor.hpp"

#include "actors/resident_memory.hpp"

#include <fmt/format.h>

#include <numeric>

namespace troupe::actors {

namespace {

void note_heartbeat(Self<PongListener, TraceState> self, std::uint32_t worker,
                    const Pong& pong) {
  const auto count = [&](const char* what, std::uint64_t value) {
    trace::counter(self->track(),
                   trace::name(fmt::format("{} worker {}", what, worker)),
                   static_cast<double>(value));
  };
  count("memory_bytes", pong.memory_bytes);
  count("stash_bytes", pong.stash_bytes);
  if (pong.progress != self->state.last[worker].progress)
    count("progress", std::reduce(pong.progress.begin(), pong.progress.end()));
  if (pong.dropped_events > self->state.last[worker].dropped_events)
    count("dropped_events", pong.dropped_events);
  self->state.last[worker] = pong;
  if (worker == 0) // as often as the others
    trace::counter(self->track(), trace::name("memory_bytes master"),
                   static_cast<double>(resident_bytes()));
}

} // namespace

PongListener::behavior_type trace_actor(Self<PongListener, TraceState> self) {
  return {
    [=](ping_atom, std::uint32_t worker, const Pong& pong) {
      note_heartbeat(self, worker, pong);
    },
  };
}

} // namespace troupe::actors
