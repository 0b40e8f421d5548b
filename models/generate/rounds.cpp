#include "models/generate/rounds.hpp"

#include <algorithm>

namespace troupe::models::internal {

namespace {

using Speakers = std::span<const std::unique_ptr<Rollout>>;

/// Begins the turns that have arrived.
void take_turns(Speakers speakers, TurnFeed& feed, bool idle) {
  auto turns = feed.take(idle);
  if (!feed.open())
    for (const auto& speaker : speakers)
      speaker->end_asking();
  for (Turn& turn : turns) {
    if (turn.speaker >= speakers.size())
      generation_failed(Errc::bad_input, "sample " + to_string(turn.sample)
                                           + ": there is no model "
                                           + std::to_string(turn.speaker));
    speakers[turn.speaker]->ask(turn);
  }
}

} // namespace

void run_rounds(Speakers speakers, TurnFeed feed, const RunContext& context) {
  PhaseSpans spans(context);
  const auto all_finished = [&] {
    return std::ranges::all_of(
      speakers, [](const auto& speaker) { return speaker->finished(); });
  };
  while (feed.open() || !all_finished()) {
    if (feed.open())
      take_turns(speakers, feed, all_finished());
    if (context.stop_requested()) // also if no token passes
      context.check();
    for (const auto& speaker : speakers)
      speaker->round(spans);
  }
}

} // namespace troupe::models::internal
