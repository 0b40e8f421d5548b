// The master's steps from one task to the next: launch, finish, commit, save,
// end. Functions over the master's self pointer, shared by its sources only.
#pragma once

#include "actors/master/master_actor.hpp"

namespace troupe::actors {

using MasterSelf = Self<MasterActor, MasterState>;

const plans::TaskTemplate& template_of(MasterSelf self, plans::TaskRef task);
/// Returns the call of a task; nullptr if it is no call.
const plans::Call* call_of(MasterSelf self, plans::TaskRef task);
Context context_for(MasterSelf self, StepId step);
/// Returns the version of the weights that the task uses (I4).
Version version_of(const MasterSetup& setup, plans::TaskRef task);
/// Returns the order of a task that reloads, offloads or drops planes.
ResidencyOrder residency_order(const MasterSetup& setup, plans::TaskRef task);
/// Sends what the schedule released, unless a save or the end holds it back.
void launch(MasterSelf self, const std::vector<plans::TaskRef>& tasks);
/// Finishes a running task.
void finish(MasterSelf self, plans::TaskRef task);
/// Makes a checkpoint before `next_step`: copies, then writes in the
/// background.
void save(MasterSelf self, StepId next_step);
/// Sends what a save or an evaluation held back.
void release(MasterSelf self);
/// Returns whether an evaluation is due before `next_step`.
bool evaluation_due(const MasterState& state, StepId next_step);
/// Starts the evaluation that is due once nothing runs.
void evaluate_if_due(MasterSelf self);
/// Ends the evaluation: the run continues, or fails.
void evaluated(MasterSelf self, const FailureMessage& message);
/// Ends the run with its first failure: all work stops.
void fail_run(MasterSelf self, const Failure& failure);
void end_run(MasterSelf self, const RunEnd& end);

} // namespace troupe::actors
