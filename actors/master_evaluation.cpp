#include "actors/master_work.hpp"

namespace troupe::actors {

bool evaluation_due(const MasterState& state, StepId next_step) {
  const auto& setup = state.setup;
  const auto& times = setup.evaluation_times;
  if (!setup.evaluation)
    return false;
  if (next_step == StepId{0})
    return times.at_start;
  if (next_step == setup.end_step && times.at_end)
    return true;
  // one that a stop would delay is made when the run goes on
  const bool stops = next_step == state.end_step && next_step < setup.end_step;
  return !stops && times.every != 0 && next_step.value % times.every == 0;
}

void evaluate_if_due(MasterSelf self) {
  auto& state = self->state;
  if (!state.evaluating || state.running > 0 || state.ended
      || state.evaluation_began != Clock::time_point{})
    return;
  state.evaluation_began = Clock::now();
  MasterSetup setup = *state.setup.evaluation;
  setup.first_step = *state.evaluating;
  setup.end_step = StepId{setup.first_step.value + 1};
  setup.on_end
    = [me = caf::actor_cast<MasterActor>(self->address())](const RunEnd& end) {
        const bool failed = end.kind == RunEnd::Kind::failed;
        caf::anon_send(me, judged_atom::value,
                       to_trouble(failed ? end.failure : Failure{}));
      };
  // ends with this one
  state.judge = self->spawn<caf::linked>(master_actor, std::move(setup));
  caf::anon_send(state.judge, start_atom::value);
}

void evaluated(MasterSelf self, const Trouble& trouble) {
  auto& state = self->state;
  const auto failure = to_failure(trouble);
  if (failure.code != Errc::ok)
    return fail_run(self, failure);
  if (!state.evaluating || state.ended)
    return;
  self->unlink_from(state.judge);
  self->send_exit(std::exchange(state.judge, {}),
                  caf::exit_reason::user_shutdown);
  const auto now = Clock::now();
  state.last_commit += now - state.evaluation_began; // not the step's time
  state.last_progress = AwakeClock::now();
  state.idle = IdleTimes{now};
  state.evaluating.reset();
  state.evaluation_began = {};
  release(self);
}

} // namespace troupe::actors
