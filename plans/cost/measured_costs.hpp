// How much longer the calls of a run took than predicted. The cost model
// multiplies its predictions by these factors, so that a plan that never ran is
// predicted with the costs of the run that did: they hold for this model, these
// lengths and this machine, and include what no formula knows, such as a reward
// program of the user's.
#pragma once

#include <map>
#include <string>

namespace troupe::plans {

struct MeasuredCosts {
  std::map<std::string, double> call_factors = {}; ///< by call; absent: 1
  /// Seconds per step of functions on the host, which are predicted as free.
  std::map<std::string, double> function_s = {};
  double move_factor = 1;

  double factor_of(const std::string& call) const {
    const auto found = call_factors.find(call);
    return found == call_factors.end() ? 1 : found->second;
  }
  double function_seconds(const std::string& call) const {
    const auto found = function_s.find(call);
    return found == function_s.end() ? 0 : found->second;
  }
};

} // namespace troupe::plans
