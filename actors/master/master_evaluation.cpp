#include "actors/master/master_work.hpp"

namespace troupe::actors {

bool evaluation_due(const MasterState& state, StepId next_step) {
  const auto& setup = state.setup;
  const auto& times = setup.evaluation.times;
  if (!setup.evaluation.master)
    return false;
  if (next_step == StepId{0})
    return times.at_start;
  if (next_step == setup.end_step && times.at_end)
    return true;
  // an evaluation that a stop would delay runs when the run resumes
  const bool stops
    = next_step == state.progress.end_step && next_step < setup.end_step;
  return !stops && times.every != 0 && next_step.value % times.every == 0;
}

void evaluate_if_due(MasterSelf self) {
  auto& state = self->state;
  if (!state.evaluation.after || state.tasks.running > 0 || state.progress.ended
      || state.evaluation.began != Clock::time_point{})
    return;
  state.evaluation.began = Clock::now();
  MasterSetup setup = *state.setup.evaluation.master;
  setup.start.first_step = *state.evaluation.after;
  setup.end_step = StepId{setup.start.first_step.value + 1};
  setup.callbacks.on_end
    = [me = caf::actor_cast<MasterActor>(self->address())](const RunEnd& end) {
        const bool failed = end.kind == RunEnd::Kind::failed;
        caf::anon_send(me, evaluated_atom::value,
                       to_failure_message(failed ? end.failure : Failure{}));
      };
  // linked: ends with this master
  state.evaluation.master
    = self->spawn<caf::linked>(master_actor, std::move(setup));
  caf::anon_send(state.evaluation.master, start_atom::value);
}

void evaluated(MasterSelf self, const FailureMessage& message) {
  auto& state = self->state;
  const auto failure = to_failure(message);
  if (failure.code != Errc::ok)
    return fail_run(self, failure);
  if (!state.evaluation.after || state.progress.ended)
    return;
  self->unlink_from(state.evaluation.master);
  self->send_exit(std::exchange(state.evaluation.master, {}),
                  caf::exit_reason::user_shutdown);
  const auto now = Clock::now();
  state.progress.last_commit
    += now - state.evaluation.began; // not part of the step's time
  state.stalls.last_progress = AwakeClock::now();
  state.idle.times = IdleTimes{now};
  state.evaluation.after.reset();
  state.evaluation.began = {};
  release(self);
}

} // namespace troupe::actors
