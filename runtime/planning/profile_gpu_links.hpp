// Measures the memory and the links of the GPUs of a pool, all at once: copies
// from device to device and to page-locked memory of the host, sums and gathers
// by NCCL or, where GPUs are shared, through the host.
#pragma once

#include "plans/cost/hardware.hpp"
#include "runtime/planning/profile_pool.hpp"

namespace troupe::runtime {

/// Sets the rates of memory and links of `hardware`, which has `mem_bytes`,
/// with sources. Links between hosts, and those of a device that is alone, keep
/// what is assumed.
void measure_gpu_links(ProfilePool& pool, plans::Hardware& hardware);

} // namespace troupe::runtime
