// Functions of a workflow: calls without weights. A function is pure: it takes
// rows of the whole batch (or of one group or sample, by the call's scope) and
// returns new keys, numbers for metrics, and the carried values of the next
// step.
#pragma once

#include "config/base/ids.hpp"
#include "models/rl/known_keys.hpp"
#include "models/rl/metric_sums.hpp"
#include "net/base/rows.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models {

/// State from step to step by name ("kl_coef"), owned by the function's call.
using CarriedValues = std::map<std::string, double, std::less<>>;

struct FunctionContext {
  const Settings& settings;
  StepId step;
  CarriedValues carried; ///< as left by the previous step
};

struct FunctionResult {
  net::Rows rows; ///< new keys, same samples in the same order
  MetricSums sums;
  CarriedValues carried; ///< for the next step
};

using Function
  = std::function<FunctionResult(const net::Rows&, const FunctionContext&)>;

struct FunctionEntry {
  std::string name; ///< `fn` of the call: "ppo_advantages"
  Function function = {};
  std::vector<KnownKey> reads = {};
  std::vector<KnownCarried> carries = {};
};

/// A table of functions by name.
class Functions {
public:
  void add(FunctionEntry entry);
  /// Returns the entry of a function. Throws ConfigError naming the known
  /// functions.
  const FunctionEntry& find(std::string_view name) const;
  bool has(std::string_view name) const;
  std::vector<std::string> names() const;

private:
  std::vector<FunctionEntry> entries_;
};

/// Returns the built-in functions; those of a user-defined program run through
/// actors/user/user_work.hpp.
const Functions& functions();

/// Returns functions().find(fn).function(rows, context).
FunctionResult run_function(const std::string& fn, const net::Rows& rows,
                            const FunctionContext& context);

} // namespace troupe::models
