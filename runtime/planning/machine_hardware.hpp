// The numbers of this machine before anything is measured, and the name that
// what is measured here carries. Both are of what a run computes on: the
// shipped laptop's for CPU devices; for GPUs those of their kind, with the
// generation and the memory that the driver says.
#pragma once

#include "config/settings/settings.hpp"
#include "net/base/gpus.hpp"
#include "plans/cost/hardware.hpp"

#include <cstdint>
#include <string>

namespace troupe::runtime {

/// Returns the numbers for so many devices of this host, of the kind that the
/// settings name or find. Throws ConfigError as `device_kind` does.
plans::Hardware machine_hardware(const Settings& settings,
                                 std::uint32_t devices_per_node);
/// Returns the same for a host with these GPUs. `cluster.device_memory_reserve`
/// says what stays free of them.
plans::Hardware gpu_hardware(const net::GpuReport& gpus,
                             std::uint32_t devices_per_node);

/// Returns the name of profiles of what the settings compute on here.
std::string machine_name(const Settings& settings);

} // namespace troupe::runtime
