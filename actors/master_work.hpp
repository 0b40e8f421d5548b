// The master's steps from one task to the next: launch, finish, commit, save,
// end. Functions over the master's self pointer, shared by its sources only.
#pragma once

#include "actors/master_actor.hpp"

namespace troupe::actors {

using MasterSelf = Self<MasterActor, MasterState>;

Context context_for(MasterSelf self, StepId step);
/// Sends what the schedule released, unless a save or the end holds it back.
void launch(MasterSelf self, const std::vector<plans::TaskRef>& tasks);
/// Makes a checkpoint before `next_step`: copies, then writes behind.
void save(MasterSelf self, StepId next_step);
/// The first failure ends the run: everybody stops.
void fail_run(MasterSelf self, const Failure& failure);
void end_run(MasterSelf self, const RunEnd& end);

} // namespace troupe::actors
