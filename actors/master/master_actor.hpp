// Runs the schedule: sends each task to its call or move actor as soon as the
// schedule releases it, records where rows are, commits steps, requests
// checkpoints, and ends the run: done, stopped after a checkpoint, or failed
// with the root cause. All decisions are plans::Schedule's; this only sends.
//
//     start -> launch ready tasks -> task done -> more ready tasks
//                                       |-> step done -> commit, copy? report
//                                                               |-> write,
//                                                               commit
//     stop  -> no new steps -> last step done -> save -> end(stopped)
//     down / failure -> abort all nodes -> end(failed)
//
// Between two steps it may evaluate: nothing new starts, and once nothing runs
// any more a second master runs one step of the evaluation's graph on the same
// shards; then this one continues. Training finds the weights that it left.
//
// Parent: the session, which ends it with the actor system.
#pragma once

#include "actors/master/master_state.hpp"

namespace troupe::actors {

MasterActor::behavior_type master_actor(Self<MasterActor, MasterState> self,
                                        MasterSetup setup);

} // namespace troupe::actors
