#include "actors/protocol/device_names.hpp"

#include "plans/plan/execution_plan.hpp"

namespace troupe::actors {

std::string device_names(const std::vector<Rank>& devices) {
  return (devices.size() == 1 ? "device " : "devices ")
         + plans::print_devices(devices);
}

} // namespace troupe::actors
