// Devices of a node that share its cores: CPU devices, of which a host may have
// more than cores. Here is what the numbers of such a machine mean; hardware
// whose devices have all they need is the same with any number of them at work.
//
// `troupe profile` measures with all devices of a node at work, since no moment
// is quieter than it knows: N devices (devices_per_node) that each have the
// share s (device.crowded_share) of what they would have alone, so C = s N
// cores. A device uses one core at most; those at work share them equally:
//
//   stretch(B) = max(1, B / C)   times the seconds with a core for each of B
//   alone      = profiled seconds * s * stretch(b)    of a call on b devices
//   beside     = alone * stretch(B) / stretch(b)      while B of its node work
//
// `alone` is what the cost model says: the least that a call takes, so bounds
// that know nothing of neighbours hold. The simulator knows who works at once.
// Stages of a pipeline wait for each other (StageTurns): alone it takes the
// mean stretch of its turns, beside others it counts as those at work on
// average. Where a mesh spans nodes, the fullest one sets the pace. Moves,
// reloads and offloads are work of their devices as calls are.
#pragma once

#include "plans/execution_plan.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace troupe::plans {

struct Hardware;

/// Devices by node; nodes without any are left out.
using DevicesOfNodes = std::vector<std::pair<std::uint32_t, double>>;

/// Stages that wait for each other: of p stages 1, 2, .. min(M, p), .. 2, 1 are
/// at work in the M + p - 1 turns that M micro-batches take.
struct StageTurns {
  double stages = 1;
  double micro_batches = 1;

  /// Of the devices, those at work on average.
  double use() const {
    return micro_batches / (micro_batches + stages - 1);
  }
};

class SharedCores {
public:
  /// Every device has a core.
  SharedCores() = default;
  SharedCores(const Hardware& hardware, const Cluster& cluster);

  bool any() const {
    return share_ < 1;
  }
  /// Times the seconds that work takes with a core for each of `busy` devices
  /// of one node.
  double stretch(double busy) const {
    return std::max(1.0, busy / cores_);
  }
  /// Of the fullest node.
  double stretch(const DevicesOfNodes& busy) const;
  /// Of the seconds that work takes while all devices work, those that it takes
  /// on these alone.
  double alone(const std::vector<Rank>& devices,
               const StageTurns& turns = {}) const;
  /// Cores that work on these devices takes while it runs alone; where each
  /// device has its own, nobody else can have those of one that waits.
  double at_work(const std::vector<Rank>& devices, double use) const;
  /// That so many devices of a node may take.
  double cores_of(double devices) const {
    return std::min(devices, cores_);
  }

  DevicesOfNodes by_node(std::vector<Rank> devices, double use) const;

private:
  double share_ = 1;
  double cores_ = std::numeric_limits<double>::infinity(); ///< of a node
  std::uint32_t devices_per_node_ = 1;
};

} // namespace troupe::plans
