// One way to run a call, with its time and memory, which do not depend on the
// position of its mesh (search_space.hpp).
#pragma once

#include "plans/cost/cluster_hardware.hpp"
#include "plans/plan/execution_plan.hpp"

#include <cstdint>

namespace troupe::plans {

/// Costs of a call besides its own time and memory.
struct AroundCall {
  double weights_s = 0; ///< to load them from host memory, or to offload them
  double moments_s = 0; ///< likewise, of the optimizer
  double update_s = 0;  ///< to bring new weights to its servers
  std::uint64_t server_bytes = 0; ///< of these, always on its devices
};

/// One way to run a call, at any position whose nodes are of these kinds.
struct CallOption {
  std::uint32_t num_devices = 1;
  KindSet kinds = 0; ///< 0: nodes are alike
  Strategy strategy = {};
  int micro_batches = 0;
  int chunks = 1;
  std::uint32_t responses = 0; ///< of a generation, as in Placement
  RoleMemory offload = {};     ///< planes that leave the replica which it names
  /// First option of the call with these devices and this strategy: moves
  /// depend on nothing else.
  std::uint32_t mesh = 0;
  std::uint32_t most_responses = 0;  ///< first of those with other answers only
  std::uint32_t fewer_responses = 0; ///< the next of them; itself: none
  double seconds = 0;                ///< of the first chunk
  double later_s = 0;                ///< added by each later chunk
  AroundCall around = {};
  double device_s = 0;            ///< of its devices, with reloads and offloads
  double use = 1;                 ///< share of its devices that work at once
  double cores = 1;               ///< that these keep busy (shared_cores.hpp)
  std::uint64_t static_bytes = 0; ///< always on its devices
  std::uint64_t weight_bytes = 0; ///< while it runs, unless it shares a replica
  std::uint64_t active_bytes = 0; ///< while it runs

  double total_s() const {
    return seconds + later_s * (chunks - 1);
  }
  /// Returns the seconds to load `planes`, or to offload them.
  double planes_s(RoleMemory planes) const {
    return (planes.offload_weights ? around.weights_s : 0)
           + (planes.offload_optimizer ? around.moments_s : 0);
  }
  double offload_s() const {
    return planes_s(offload);
  }
};

} // namespace troupe::plans
