// Measures this machine for the planner: the run's own models through the
// engine that runs them (runtime/planning/model_profiler.hpp), in layouts with
// and without tensor parallelism, and the links between devices
// (runtime/planning/profile_links.hpp), always with all devices of a host at
// work, since that is the state of a machine in a run. What is not measured
// keeps the number and the source of the shipped file that is nearest
// (runtime/planning/machine_hardware.hpp).
#pragma once

#include "config/model/model_shape.hpp"
#include "config/settings/settings.hpp"
#include "plans/cost/hardware.hpp"
#include "plans/cost/profile_table.hpp"
#include "plans/workflow/workflow.hpp"

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

/// Effort of a measurement.
struct ProfileEffort {
  double seconds = 0; ///< of all models, approximately
  int sweeps = 1; ///< passes over everything: a program that runs during one
                  ///< may have ended by the next
  double least_s = 0; ///< per measurement, which has at least three rounds
};
/// Effort before a search; `troupe profile` takes longer.
inline constexpr ProfileEffort quick_profile_effort
  = {.seconds = 4, .sweeps = 1, .least_s = 0.02};

/// Measures the machine under the calls of `workflow`, on the devices of one
/// node of `cluster`.
MachineProfile measure_machine(const Settings& settings,
                               const plans::Workflow& workflow,
                               const std::map<std::string, ModelShape>& shapes,
                               const plans::Cluster& cluster,
                               const ProfileEffort& effort);

} // namespace troupe::runtime
