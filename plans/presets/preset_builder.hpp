// Common parts of the presets: spans of devices, strategies that a model's
// shape allows, groups in proportion to weights.
#pragma once

#include "plans/presets/presets.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe::plans::internal {

/// `count` devices starting at `first`.
struct DeviceSpan {
  std::uint32_t first = 0;
  std::uint32_t count = 1;
};

/// Cuts `whole` into one span per weight, each at least one device, the rest in
/// proportion (largest remainder). Needs at least as many devices as weights.
std::vector<DeviceSpan> cut_span(DeviceSpan whole,
                                 std::span<const double> weights);

class PresetBuilder {
public:
  PresetBuilder(std::string name, const Workflow& workflow,
                const Cluster& cluster, const PresetFacts& facts)
    : name_(std::move(name)),
      workflow_(workflow),
      facts_(facts),
      plan_{.cluster = cluster} {}

  const Workflow& workflow() const {
    return workflow_;
  }
  const Cluster& cluster() const {
    return plan_.cluster;
  }
  ExecutionPlan& plan() {
    return plan_;
  }
  DeviceSpan everything() const {
    return {0, plan_.cluster.num_devices()};
  }
  std::vector<const Call*> calls(CallKind kind) const;

  void place(const Call& call, DeviceSpan span, Strategy strategy);
  void place_data_parallel(const Call& call, DeviceSpan span);
  void place_sharded(const Call& call, DeviceSpan span); ///< z3
  /// Uses dp where memory allows; else tp in a node, then pp, then z1.
  void place_fitting(const Call& call, DeviceSpan span);
  /// Uses as many tensor peers as memory needs, at least 2 where that is legal.
  void place_gathered(const Call& call, DeviceSpan span);
  /// Uses tp up to `tp_limit` inside a node, pp over the span's nodes.
  void place_tensor(const Call& call, DeviceSpan span, std::uint32_t tp_limit);

  /// Returns whether a role's training state, cut into `parts`, leaves half of
  /// a device free.
  bool fits_sharded(const std::string& role, std::uint32_t parts) const;

  /// Returns whether devices can hold these roles, cut into `parts`, and a
  /// pass.
  bool holds_sharded(const std::vector<std::string>& roles,
                     std::uint32_t parts) const;

  /// Returns the number of nodes that a span touches.
  std::uint32_t nodes_of(DeviceSpan span) const;
  ModelShape shape_of(const std::string& role) const; ///< zeros: unknown
  /// Returns 1 if unknown. Computed once, as splits need it a thousand times.
  double num_parameters_of(const std::string& role) const;

  bool fits(const Call& call, const Strategy& strategy) const;
  void need_devices(std::uint32_t count, const std::string& why,
                    const std::string& instead) const;
  void need_kind(CallKind kind) const;

private:
  std::string name_;
  const Workflow& workflow_;
  const PresetFacts& facts_;
  ExecutionPlan plan_;
  mutable std::map<std::string, double> num_parameters_; ///< by role
};

void build_openrlhf(PresetBuilder& builder);
void build_openrlhf_colocated(PresetBuilder& builder);
void build_interleaving(PresetBuilder& builder);
void build_separation(PresetBuilder& builder);
void build_async(PresetBuilder& builder);
void build_real_heuristic(PresetBuilder& builder);

} // namespace troupe::plans::internal
