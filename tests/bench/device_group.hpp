// Groups of devices that are threads of a benchmark, as a run joins them
// (actors/worker/shard_groups.hpp): over NCCL where each device has a GPU of
// its own, by way of the host where GPUs are shared.
#pragma once

#include "net/collectives/host_collectives.hpp"

#include "bench.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::bench {

/// Returns the group of a member, for memory of its device of the command
/// line.
std::shared_ptr<net::Collectives> device_group(const Options& options,
                                               const net::GroupSpec& spec,
                                               net::GroupRegistry& registry);

/// Runs `work` for each member, the first one on the calling thread. The first
/// failure ends the waits of the others and is thrown here.
void together(std::uint32_t members, net::GroupRegistry& registry,
              const std::function<void(std::uint32_t)>& work);

} // namespace troupe::bench
