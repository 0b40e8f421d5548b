// The space that searches walk: for each call the meshes by size, every legal
// strategy, micro-batching, sharding, offload and chunks, with its time and
// memory computed once. The position on the line of devices is separate: time
// does not depend on it as long as small meshes are inside a node and large
// ones are runs of whole nodes. Where nodes differ, an option is for meshes on
// some kinds of them, and positions are those that have just these kinds.
#pragma once

#include "plans/cost/cost_model.hpp"
#include "plans/memory/memory_model.hpp"
#include "plans/memory/second_models.hpp"
#include "plans/search/call_option.hpp"
#include "plans/search/space_limits.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe::plans {

/// A choice for every call of a space: its option and first device.
struct SpacePoint {
  std::vector<std::uint32_t> options = {};
  std::vector<std::uint32_t> positions = {};
  bool operator==(const SpacePoint&) const = default;
};
inline constexpr std::uint32_t not_chosen = ~0u; ///< of SpacePoint::options

class SearchSpace {
public:
  SearchSpace(const PlanProblem& problem, const CostModel& costs,
              SpaceLimits limits);

  struct SpaceCall {
    const Call* call = nullptr;
    std::vector<CallOption> options = {}; ///< fastest first
    std::int32_t home = -1;    ///< index of the call that trains its role
    std::int32_t tracked = -1; ///< or of the one that trains the tracked role
    bool trains = false;
    /// Returns whether a move delivers its weights where no replica is shared.
    bool reads_home() const {
      return home >= 0 && !trains;
    }
    /// Least bytes per device over all options, counted as `SpacePeak` does.
    std::uint64_t smallest_bytes = ~std::uint64_t{0};
    std::uint32_t smallest_at = 0; ///< a device of that option
  };

  const PlanProblem& problem() const {
    return problem_;
  }
  /// Returns the calls with devices, in workflow order.
  const std::vector<SpaceCall>& calls() const {
    return calls_;
  }
  const SpaceCounts& counts() const {
    return counts_;
  }
  std::uint32_t num_devices() const {
    return problem_.cluster.num_devices();
  }
  /// Returns the cores that all nodes offer to devices; else one per device.
  double num_cores() const;
  /// Returns the memory of the largest devices; huge if not known.
  std::uint64_t memory_bytes() const;
  /// Returns what a device has less than the largest: it counts as in use.
  std::uint64_t missing_bytes(std::uint32_t device) const;
  /// Returns the memory of the smallest devices of these kinds.
  std::uint64_t memory_bytes(KindSet kinds) const;
  bool is_mixed() const {
    return problem_.hardware.is_mixed();
  }
  /// Returns the kinds of the nodes under a mesh; 0 where all are alike.
  KindSet kinds_at(std::uint32_t position, std::uint32_t count) const;
  /// Returns where nodes of another kind than the one before begin; 0 is one.
  const std::vector<std::uint32_t>& kind_starts() const {
    return nodes_.kind_starts;
  }

  /// Returns the first position at or after `from` that is aligned for a mesh
  /// of `count` devices; past the end if there is none.
  std::uint32_t align(std::uint32_t from, std::uint32_t count) const;
  /// Returns the first such position on the option's kinds of nodes.
  std::uint32_t align(std::uint32_t from, const CallOption& option) const;

  Placement placement(const CallOption& option, std::uint32_t position) const;
  /// Returns whether a call shares the replica of its home.
  static bool shares(const CallOption& option, std::uint32_t position,
                     const CallOption& home, std::uint32_t home_position);
  /// Returns the seconds per step to move the weights of the home or the
  /// tracked role to the option; cached.
  double move_s(std::size_t call, std::uint32_t option, std::uint32_t position,
                std::uint32_t home_option, std::uint32_t home_position) const;
  /// Returns at most the same, without working the move out.
  double least_move_s(std::size_t call, std::uint32_t option,
                      std::uint32_t position, std::uint32_t home_option,
                      std::uint32_t home_position) const;
  /// Returns the master's seconds per step (`Hardware::call_device_s`).
  double master_s(const SpacePoint& point) const;
  std::uint64_t moves_worked_out() const {
    return moves_s_.size();
  }

private:
  /// Call, mesh and position, mesh and position of its home. Meshes are
  /// numbered by options, of which a call may have very many.
  using MoveKey = std::array<std::uint32_t, 5>;
  struct MoveKeyHash {
    std::size_t operator()(const MoveKey& key) const {
      std::uint64_t hash = 0;
      for (const auto part : key)
        hash = (hash ^ part) * 0x9e3779b97f4a7c15;
      return hash ^ hash >> 32;
    }
  };

  /// Memory where nodes differ, and where nodes of another kind begin.
  struct MixedNodes {
    std::vector<std::uint64_t> bytes = {}; ///< per device, by node
    std::uint64_t most_bytes = 0;
    std::vector<std::uint32_t> kind_starts = {0};
  };

  void tell_nodes_apart();
  std::int32_t trainer_of(const std::string& role) const;
  /// Returns the call whose weights move to `call`.
  const SpaceCall& home_of(const SpaceCall& call) const {
    return calls_[static_cast<std::size_t>(call.tracked >= 0 ? call.tracked
                                                             : call.home)];
  }
  bool fills_memory();
  std::vector<std::uint32_t> mesh_sizes() const;
  void add_options(SpaceCall& call);
  void add_placement(SpaceCall& call, const ExecutionPlan& plan);
  const StageBytes& stage_of(const std::string& role, Strategy strategy);
  std::set<KindSet> kind_sets(std::uint32_t num_devices) const;
  bool allows(const Call& call, const Strategy& strategy) const;
  SecondModels second_of(const Call& call) const;
  void add_strategies(SpaceCall& call, std::uint32_t devices, KindSet kinds);
  void add_degrees(SpaceCall& call, CallOption option);
  void add_variants(SpaceCall& call, CallOption option);
  void add_batchings(SpaceCall& call, CallOption option,
                     const StageBytes& stage, int most);
  std::vector<RoleMemory> may_leave(const SpaceCall& call,
                                    const StageBytes& stage,
                                    std::uint64_t memory) const;
  void add_option(SpaceCall& call, CallOption option, const StageBytes& stage);
  std::uint32_t tightest_device(std::uint32_t position,
                                std::uint32_t count) const;
  void add_with_responses(SpaceCall& call, CallOption option,
                          const StageBytes& stage);
  void prune(SpaceCall& call);
  void move_left(const CallOption& mine, std::uint32_t& position,
                 const CallOption& home, std::uint32_t& home_position) const;

  const PlanProblem& problem_;
  const CostModel& costs_;
  SpaceLimits limits_;
  bool is_tight_ = false; ///< memory, for all roles together
  MixedNodes nodes_;
  std::vector<SpaceCall> calls_;
  SpaceCounts counts_;
  std::map<std::string, std::string> alike_;   ///< a role of equal shape
  std::map<std::string, HeldParameters> held_; ///< by alike
  std::map<std::pair<std::string, Strategy>, StageBytes> stages_;
  mutable std::unordered_map<MoveKey, double, MoveKeyHash> moves_s_;
  /// By call, its mesh and that of its home.
  mutable std::unordered_map<MoveKey, double, MoveKeyHash> least_moves_s_;
};

/// Returns the plan of a point.
ExecutionPlan plan_at(const SearchSpace& space, const SpacePoint& point,
                      const std::map<std::string, std::uint32_t>& lag);

/// Returns the same with the cluster's devices replaced by the runs between the
/// ends of meshes: as many as there are different ones, so simulating is fast.
ExecutionPlan small_plan_at(const SearchSpace& space, const SpacePoint& point,
                            const std::map<std::string, std::uint32_t>& lag);

/// Selects the same options in `count` chunks; returns false if there are none.
bool cut_into_chunks(const SearchSpace& space, SpacePoint& point, int count);

/// Returns the bytes of the fullest device, with those that it has less than
/// the largest; calls not chosen count nothing.
std::uint64_t peak_bytes(const SearchSpace& space, const SpacePoint& point);
/// The fullest device and the call that needs most there.
struct SpacePeak {
  std::uint64_t bytes = 0;
  std::uint32_t device = 0;
  std::size_t call = 0; ///< index in the space
};
SpacePeak peak_of(const SearchSpace& space, const SpacePoint& point);

} // namespace troupe::plans
