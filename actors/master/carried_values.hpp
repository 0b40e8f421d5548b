// Values that are carried from step to step (a KL coefficient, moments): what a
// step's calls see must not depend on which later step ran meanwhile (I8).
#pragma once

#include "actors/master/master_actor.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::actors {

/// Returns the values that calls of `step` see: those that this step and the
/// ones before it have set.
std::map<std::string, double> carried_at(const MasterState& state, StepId step);

/// Returns the values as message parts, bit for bit.
std::vector<Carried> carried_list(const std::map<std::string, double>& carried);

} // namespace troupe::actors
