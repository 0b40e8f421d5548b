// Makes the findings of `plan advise`: loads a configuration of ours or of
// another system, predicts its plan, the best that its system can be told, the
// best of all, and the same on other clusters.
#pragma once

#include "runtime/planner/advise_report.hpp"
#include "runtime/planner/import_files.hpp"
#include "runtime/planner/plan_options.hpp"

#include <string>
#include <vector>

namespace troupe::runtime {

struct AdviseArguments : PlanArguments {
  ImportWords words;
  int gpus = 0;
  std::vector<std::string> what_if;
  double price = 0;
  bool clusters = true;
};

/// Predicts the plans of a report. Throws ConfigError for words that make no
/// sense.
AdviceReport advise(const AdviseArguments& arguments);

} // namespace troupe::runtime
