// The findings of `plan advise`, as text of at most 100 columns and as JSON.
// Every number says what it rests on: measured, fitted, data sheet, assumed,
// given.
#pragma once

#include "plans/advise/advice.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::runtime {

/// A plan with its predicted step.
struct AdvisedPlan {
  std::string what = {}; ///< "what it runs", "best that verl can run"
  std::string layout = {};
  plans::ExecutionPlan plan = {};
  std::string why_not = {}; ///< why it cannot run; empty: it can
  std::optional<plans::Simulation> run = {};
  std::vector<plans::SystemFlag> flags = {}; ///< that change it into this
};

/// A row of the table of clusters.
struct ClusterRow {
  std::uint32_t devices = 0;
  std::optional<double> own_s = {};
  std::optional<double> system_s = {}; ///< best that the system can run
  std::optional<double> best_s = {};
};

/// How good a plan can be.
struct AdvisedBound {
  double step_s = 0;
  std::string proof = {};
};

struct AdviceReport {
  std::string system = {}; ///< "verl"; "troupe" for settings of ours
  std::string subject = {};
  plans::ClusterHardware hardware = {};
  bool lengths_are_given = false;
  AdvisedPlan own = {};
  std::optional<AdvisedPlan> what_if = {};
  std::optional<AdvisedPlan> of_system = {}; ///< none: ours, or none fits
  std::optional<AdvisedPlan> best = {};      ///< none: nothing fits
  AdvisedBound bound = {};
  std::vector<std::string> inexpressible = {};
  std::vector<ClusterRow> clusters = {};
  double price = 0; ///< of a device for an hour; 0: not given
};

/// Returns the report for people.
std::string advice_text(const AdviceReport& report);
/// Returns the report for programs, under the names of AdviceReport.
std::string advice_json(const AdviceReport& report);
/// Returns a self-contained page with the pictures of the plans.
std::string advice_page(const AdviceReport& report);

} // namespace troupe::runtime
