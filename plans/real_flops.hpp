// Work of a PPO step as ReaL counts it (Mei et al. 2024, arXiv 2406.14088,
// monitor.py of its repository): grouped KV heads and causal halving ignored, a
// training counts four forwards, the head twice; of experts those a token uses.
// For tables that quote PFLOP/s; the cost model counts real work.
#pragma once

#include "plans/plan_problem.hpp"

namespace troupe::plans {

/// FLOP of one step, all calls, at the mean length.
double real_flops(const PlanProblem& problem);

} // namespace troupe::plans
