// The token by which programs from outside take sessions of a run. It stays
// through all attempts, also after a kill, so that a pool of programs goes on;
// it is in one file that only the owner of the run can read.
#pragma once

#include "runtime/run_folder/run_folder.hpp"

#include <string>

namespace troupe::runtime {

/// Returns the token of a run; makes one if there is none.
std::string agents_token(const RunFolder& folder);

} // namespace troupe::runtime
