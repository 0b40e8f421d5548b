// Many workers in one process, for the cost of the master alone: they join a
// run over connections of their own and take part in every call, but compute
// nothing and hold no rows. An actor system each, as in real workers.
#pragma once

#include <string>
#include <vector>

namespace troupe::bench {

/// First argument of the program that is these workers.
inline constexpr auto fake_workers_verb = "fake-workers";

/// Runs them until the master ends them, then prints how many orders of steps
/// they got. `arguments`: HOST PORT TOKEN_FILE NUMBER_OF_WORKERS.
int run_fake_workers(const std::vector<std::string>& arguments);

} // namespace troupe::bench
