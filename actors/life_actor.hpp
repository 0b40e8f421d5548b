// Where one replica's planes are: lets all of its devices bring them back for a
// call, take them to host memory after it, or drop them.
// Parent: the session.
#pragma once

#include "actors/call_actor.hpp"

namespace troupe::actors {

struct LifeSetup {
  std::string name; ///< of the replica
  std::vector<Member> members;
  std::shared_ptr<AskTable> asks;
};

struct LifeState {
  std::string name;
  Asks asks;
  LifeSetup setup;
};

LifeActor::behavior_type life_actor(Self<LifeActor, LifeState> self,
                                    LifeSetup setup);

} // namespace troupe::actors
