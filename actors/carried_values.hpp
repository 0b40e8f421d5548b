// Values that steps hand on (a KL coefficient, moments): what a step's calls
// see must not depend on which later step ran meanwhile (I8).
#pragma once

#include "actors/master_actor.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::actors {

/// The values as calls of `step` see them: those that this step and the ones
/// before it have set.
std::map<std::string, double> carried_at(const MasterState& state, StepId step);

/// The same in a message, as bits.
std::vector<Carried> carried_list(const std::map<std::string, double>& carried);

} // namespace troupe::actors
