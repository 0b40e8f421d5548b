#include "runtime/planner/plan_host.hpp"

#include "config/base/error.hpp"
#include "runtime/base/host_memory.hpp"
#include "runtime/base/processor_name.hpp"

namespace troupe::runtime {

namespace {

/// GPUs are those of a hardware file: this program looks for none.
std::string cpu_kind(const Settings& settings) {
  if (settings.cluster.device == "gpu")
    throw ConfigError({.place = place_of(settings, "cluster.device"),
                       .path = "cluster.device",
                       .expected = "--hardware to plan for GPUs",
                       .got = "'gpu' without it",
                       .hint = "--hardware h100x8"});
  return "cpu";
}

} // namespace

PlanHost planning_host() {
  return {.workflow = plans::make_workflow,
          .device_kind = cpu_kind,
          .device_bytes =
            [](const Settings&, std::uint32_t devices) {
              return host_memory_bytes_of_device(devices);
            },
          .hardware
          = [](const Settings&,
               std::uint32_t) { return plans::load_hardware("laptop"); },
          .profile_name =
            [](const Settings& settings) {
              return settings.cluster.device == "gpu" ? std::string()
                                                      : profiled_name();
            }};
}

} // namespace troupe::runtime
