// Summary of a trace in a few numbers: time of a step, its critical path, why
// devices were idle, what messages cost (docs/interface.md).
#pragma once

#include "runtime/trace/merged_trace.hpp"
#include "runtime/trace/run_graph.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::runtime {

struct MessageCost {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  double p50_us = 0; ///< from send to handling
  double p99_us = 0;
};

/// Tasks of one name.
struct TaskCost {
  double step_s = 0; ///< median over the steps that have some, first to last
  double wait_s = 0; ///< total time that devices had nothing else to do before
                     ///< it
};

/// Messages between two processes.
struct LinkCost {
  std::string link; ///< "master -> worker 0"
  std::uint64_t count = 0;
  double p99_us = 0;
};

/// A clock that differs from the first process's.
struct ClockCost {
  std::string process;
  double add_ms = 0;
  double error_ms = 0; ///< below 0: unknown
};

/// Losses of the trace.
struct TraceLosses {
  std::uint64_t unmatched_arrows = 0;
  std::uint64_t dropped_events = 0;
  MissingPast missing;
};

struct TraceSummary {
  double step_s = 0; ///< median over the traced steps
  std::uint32_t num_steps = 0;
  std::vector<std::string> critical_path; ///< tasks of the last step
  std::map<std::string, double> idle_s;   ///< by reason, over all devices
  std::map<std::string, TaskCost> tasks;
  std::string slowest_device;  ///< busiest; empty: none
  std::vector<LinkCost> links; ///< slowest p99 first
  std::string slowest_sample; ///< longest_sample(); set by the caller, not part
                              ///< of a trace
  std::map<std::string, MessageCost> messages; ///< by name
  std::vector<ClockCost> clocks;               ///< clocks of processes on other
                                               ///< hosts
  TraceLosses lost;
};

/// Ignores steps that a full trace has dropped in part. `causes` are
/// run_causes() of the run; without them there is no path.
TraceSummary summarise(const MergedTrace& trace, const Causes& causes);
std::string summary_json(const TraceSummary& summary);
std::string summary_text(const TraceSummary& summary);

} // namespace troupe::runtime
