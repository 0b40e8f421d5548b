// Work of a PPO step as ReaL counts it (Mei et al. 2024, arXiv 2406.14088,
// monitor.py of its repository): grouped KV heads and causal halving are
// ignored, training counts as four forwards, the head counts twice; only the
// experts that a token uses count. For tables that quote PFLOP/s; the cost
// model counts real work.
#pragma once

#include "plans/cost/plan_problem.hpp"

namespace troupe::plans {

/// Returns the FLOP of one step, all calls, at the mean length.
double realhf_flops(const PlanProblem& problem);

} // namespace troupe::plans
