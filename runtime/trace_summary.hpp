// What a trace says in a few numbers: time of a step, its critical path, why
// devices idled, what messages cost (INTERFACE, `trace summary`).
#pragma once

#include "runtime/merged_trace.hpp"

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

struct TraceSummary {
  double step_s = 0; ///< median over the traced steps
  std::uint32_t num_steps = 0;
  std::vector<std::string> critical_path; ///< tasks of the last step
  std::map<std::string, double> idle_s;   ///< by reason, over all devices
  std::string slowest_device;             ///< busiest; empty: none
  std::string slowest_link;               ///< slowest p99; empty: none
  std::string slowest_sample; ///< longest_sample(); the caller's, not a trace's
  std::map<std::string, MessageCost> messages; ///< by name
  std::uint64_t unmatched_arrows = 0;
  std::uint64_t dropped_events = 0;
};

TraceSummary summarise(const MergedTrace& trace);
std::string summary_json(const TraceSummary& summary);
std::string summary_text(const TraceSummary& summary);

} // namespace troupe::runtime
