// Hardware of a cluster whose nodes may be of several kinds, such as two of
// h100x8 and four of a100x8. Devices of a call work in lock-step (tensor
// shards, stages, gradients that are summed), so a mesh on several kinds has
// the worst of their numbers, one by one; a mesh on one kind has that kind's.
//
// The base class has the worst numbers of all kinds: code that reads a number
// for the cluster as a whole, such as the memory for which presets are sized,
// never promises more than every node has.
#pragma once

#include "plans/cost/hardware.hpp"
#include "plans/cost/profile_table.hpp"
#include "plans/plan/execution_plan.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace troupe::plans {

/// The numbers of a node, and what was measured on it.
struct NodeKind {
  Hardware hardware = {};
  ProfileTable profile = {}; ///< empty: formulas only
};

/// A set of kinds of nodes: bit k for kind k. 0: nodes are not told apart.
using KindSet = std::uint32_t;
/// Most kinds in a cluster, as a cost model has numbers for each set of them.
inline constexpr std::uint32_t most_kinds = 8;

struct ClusterHardware : Hardware {
  std::vector<NodeKind> kinds = {};              ///< empty: all nodes are alike
  std::vector<std::uint32_t> kind_of_nodes = {}; ///< in `kinds`, by node

  ClusterHardware() = default;
  /// Describes nodes that are all alike.
  ClusterHardware(Hardware alike) : Hardware(std::move(alike)) {}
  /// Describes one node for each entry of `of_nodes`.
  ClusterHardware(std::vector<NodeKind> all, std::vector<std::uint32_t> nodes);

  bool is_mixed() const {
    return kinds.size() > 1;
  }
  /// Returns the number of nodes that the file lists; 0: any number.
  std::uint32_t num_nodes() const {
    return static_cast<std::uint32_t>(kind_of_nodes.size());
  }
  /// Returns the kind of a node; those after the last one are like it.
  std::uint32_t kind_of(std::uint32_t node) const;
  /// Returns the hardware of a node.
  const Hardware& of_node(std::uint32_t node) const;
  /// Returns the kinds of the nodes in [first, end); 0 where all are alike.
  KindSet kinds_of(std::uint32_t first, std::uint32_t end) const;
  /// Returns the kinds that these devices are on; 0 where all are alike.
  KindSet kinds_of(const std::vector<Rank>& devices,
                   const Cluster& cluster) const;
  /// Adds a share of each device's memory to what stays free.
  void reserve_share(double share);
  /// Computes the numbers of the base class again, after a change of `kinds`.
  void update();
};

/// Returns the bytes that plans may use of a device; 0: not known.
std::uint64_t usable_bytes(const Hardware& hardware);

/// Returns the worst numbers of some kinds, without name and sources: the
/// numbers of a mesh that works at the pace of its slowest member. A number
/// that stands for another one where it is 0 is written out; devices that
/// replay no graphs count as having gaps as long as their launches.
Hardware slowest_of(const std::vector<NodeKind>& kinds, KindSet set);

} // namespace troupe::plans
