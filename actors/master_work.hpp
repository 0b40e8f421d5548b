// The master's steps from one task to the next: launch, finish, commit, save,
// end. Functions over the master's self pointer, shared by its sources only.
#pragma once

#include "actors/master_actor.hpp"

namespace troupe::actors {

using MasterSelf = Self<MasterActor, MasterState>;

const plans::TaskTemplate& template_of(MasterSelf self, plans::TaskRef task);
/// nullptr: it is no call.
const plans::Call* call_of(MasterSelf self, plans::TaskRef task);
Context context_for(MasterSelf self, StepId step);
/// Of the weights that the task uses (I4).
Version version_of(const MasterSetup& setup, plans::TaskRef task);
/// Of a task that brings planes or takes them away.
LifeOrder life_order(const MasterSetup& setup, plans::TaskRef task);
/// Sends what the schedule released, unless a save or the end holds it back.
void launch(MasterSelf self, const std::vector<plans::TaskRef>& tasks);
/// A task that was running is done.
void finish(MasterSelf self, plans::TaskRef task);
/// Makes a checkpoint before `next_step`: copies, then writes behind.
void save(MasterSelf self, StepId next_step);
/// What a save or an evaluation held up may go on.
void release(MasterSelf self);
/// Whether an evaluation comes before `next_step`.
bool evaluation_due(const MasterState& state, StepId next_step);
/// Starts the evaluation that everybody waits for once nothing runs.
void evaluate_if_due(MasterSelf self);
/// It has ended: goes on, or fails.
void evaluated(MasterSelf self, const Trouble& trouble);
/// The first failure ends the run: everybody stops.
void fail_run(MasterSelf self, const Failure& failure);
void end_run(MasterSelf self, const RunEnd& end);

} // namespace troupe::actors
