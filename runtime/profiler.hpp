// Measures this machine for the planner: the run's own models through the
// engine that runs them (runtime/model_profiler.hpp), in layouts with and
// without tensor parallelism, and the links between devices
// (runtime/profile_links.hpp) - always with all devices of a host at work,
// since that is how a run finds the machine. What is not measured keeps the
// number of the shipped `laptop` and its source.
#pragma once

#include "config/model_shape.hpp"
#include "config/settings.hpp"
#include "plans/hardware.hpp"
#include "plans/profile_table.hpp"
#include "plans/workflow.hpp"

#include <map>
#include <string>

namespace troupe::plans {
struct Cluster;
}

namespace troupe::runtime {

struct MachineProfile {
  plans::Hardware hardware;
  plans::ProfileTable table;
};

/// "profiled on PROCESSOR": the name of files that were measured here.
std::string profiled_name();

/// How long to measure.
struct ProfileEffort {
  double seconds = 0; ///< in all, about
  int sweeps = 1; ///< over everything: a program that was there goes meanwhile
  double least_s = 0; ///< of one measurement; it has three rounds at least
};

/// The machine under the calls of `workflow`, on the devices of one node of
/// `cluster`.
MachineProfile measure_machine(const Settings& settings,
                               const plans::Workflow& workflow,
                               const std::map<std::string, ModelShape>& shapes,
                               const plans::Cluster& cluster,
                               const ProfileEffort& effort);

} // namespace troupe::runtime
