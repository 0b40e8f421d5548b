// How a system lays a step out on its devices, in the few degrees of freedom
// that such systems have: a span of devices and a strategy for each model, one
// for generation. Any of them becomes a plan; each system has flags for some.
#pragma once

#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"

#include <cstdint>
#include <string>

namespace troupe::plans {

/// Devices and strategy of one model, or of its generation.
struct LayoutPart {
  std::uint32_t first = 0;
  std::uint32_t count = 0; ///< 0: there is no such model
  Strategy strategy = {};
  bool offload_weights = false;
  bool offload_optimizer = false;
  std::int64_t micro_batch_tokens = 0; ///< 0: the default

  bool operator==(const LayoutPart&) const = default;
};

struct SystemLayout {
  LayoutPart generation = {};
  LayoutPart actor = {};
  LayoutPart critic = {};
  LayoutPart ref = {};
  LayoutPart reward = {};
  /// The program that generates; empty: the one that trains.
  std::string engine = "vllm";
  /// Share of a device's memory that the engine may take: weights and cache; 0:
  /// the cache is what a batch needs.
  double engine_share = 0.9;
  /// The engine leaves the device while others compute.
  bool engine_sleeps = true;
  std::uint32_t lag = 0; ///< of generation, in steps

  bool operator==(const SystemLayout&) const = default;
  /// Returns whether generation has devices of its own.
  bool is_split() const {
    return generation.first >= actor.first + actor.count
           || actor.first >= generation.first + generation.count;
  }
  /// Returns whether all models have the same devices.
  bool is_colocated() const;
  const LayoutPart& part_of(const std::string& role) const;
};

/// Returns the plan of a layout for a workflow's calls; functions run on the
/// host.
ExecutionPlan plan_of(const SystemLayout& layout, const Workflow& workflow,
                      const Cluster& cluster);

/// Returns one line: "generation 0-7 d4t2, actor 0-7 d8z3, ref 0-7 d8z3 in host
/// memory".
std::string print(const SystemLayout& layout);

} // namespace troupe::plans
