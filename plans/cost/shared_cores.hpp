// Devices of a node that share its cores: CPU devices, of which a host may have
// more than cores. This header defines what the numbers of such a machine mean;
// hardware whose devices share nothing has the same rates however many work.
//
// `troupe profile` measures with all devices of a node at work, since it knows
// of no quieter moment: N devices (devices_per_node) that each have the share s
// (device.crowded_share) of their rate alone, so C = s N cores. A device uses
// at most one core; those at work share them equally:
//
//   stretch(B) = max(1, B / C)   factor on the seconds with a core for each
//   alone      = profiled seconds * s * stretch(b)    of a call on b devices
//   beside     = alone * stretch(B) / stretch(b)      while B of its node work
//
// `alone` is what the cost model returns: the least that a call takes, so
// bounds that ignore neighbours hold. The simulator knows which devices work at
// once. Stages of a pipeline wait for each other (StageTurns): alone it takes
// the mean stretch of its turns, with others it counts as its average number of
// working devices. Where a mesh spans nodes, the fullest one sets the pace.
// Moves, reloads and offloads occupy their devices as calls do.
#pragma once

#include "plans/plan/execution_plan.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace troupe::plans {

struct Hardware;

/// Number of devices by node; nodes without any are left out.
using DevicesOfNodes = std::vector<std::pair<std::uint32_t, double>>;

/// Stages that wait for each other: of p stages 1, 2, ..., min(M, p), ..., 2, 1
/// are at work in the M + p - 1 turns that M micro-batches take.
struct StageTurns {
  double stages = 1;
  double micro_batches = 1;

  /// Returns the share of the devices that work on average.
  double use() const {
    return micro_batches / (micro_batches + stages - 1);
  }
};

class SharedCores {
public:
  /// Gives every device its own core.
  SharedCores() = default;
  SharedCores(const Hardware& hardware, const Cluster& cluster);

  bool any() const {
    return share_ < 1;
  }
  /// Returns the factor on the seconds that work takes with one core for each
  /// of `busy` devices of one node.
  double stretch(double busy) const {
    return std::max(1.0, busy / cores_);
  }
  /// Returns the stretch of the fullest node.
  double stretch(const DevicesOfNodes& busy) const;
  /// Returns the share of the seconds measured with all devices at work that
  /// work takes on these devices alone.
  double alone(const std::vector<Rank>& devices,
               const StageTurns& turns = {}) const;
  /// Returns the cores that work on these devices uses while it runs alone;
  /// where each device has its own core, the core of a waiting device stays
  /// unavailable to others.
  double at_work(const std::vector<Rank>& devices, double use) const;
  /// Returns the cores that `devices` devices of a node may use.
  double cores_of(double devices) const {
    return std::min(devices, cores_);
  }

  DevicesOfNodes by_node(std::vector<Rank> devices, double use) const;

private:
  double share_ = 1;
  double cores_ = std::numeric_limits<double>::infinity(); ///< per node
  std::uint32_t devices_per_node_ = 1;
};

} // namespace troupe::plans
