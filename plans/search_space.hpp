// The space that searches walk: for each call the meshes by size, every legal
// strategy, micro-batching, sharding, offload and chunks, with its time and
// memory worked out once. Position on the line of devices is apart: time does
// not depend on it as long as small meshes lie inside a node and large ones are
// runs of whole nodes.
#pragma once

#include "plans/cost_model.hpp"
#include "plans/memory_model.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe::plans {

/// One way to run a call, anywhere.
struct CallOption {
  std::uint32_t num_devices = 1;
  Strategy strategy = {};
  int micro_batches = 0;
  int chunks = 1;
  std::uint32_t answers = 0; ///< of a generation, as in Placement
  RoleMemory offload = {};   ///< what leaves the replica that it names
  /// The first option of the call with these devices and this strategy: moves
  /// depend on nothing else.
  std::uint32_t mesh = 0;
  double seconds = 0;   ///< of the first chunk
  double later_s = 0;   ///< that each other chunk adds
  double weights_s = 0; ///< to bring them from host memory, or take them there
  double moments_s = 0; ///< likewise those of the optimizer
  double device_s = 0;  ///< of its devices, with what comes and goes
  double use = 1;       ///< of its devices at work at once
  double cores = 1;     ///< that these keep at work (shared_cores.hpp)
  std::uint64_t static_bytes = 0; ///< on its devices all the time
  std::uint64_t weight_bytes = 0; ///< while it runs, unless it shares a replica
  std::uint64_t active_bytes = 0; ///< while it runs

  double total_s() const {
    return seconds + later_s * (chunks - 1);
  }
  /// Seconds to bring `planes`, or to take them away.
  double planes_s(RoleMemory planes) const {
    return (planes.offload_weights ? weights_s : 0)
           + (planes.offload_optimizer ? moments_s : 0);
  }
  double offload_s() const {
    return planes_s(offload);
  }
};

/// Where the space ends.
struct SpaceLimits {
  bool chunks = false;
  /// What these plans do is in the space too: presets have splits, strategies
  /// and chunks of their own.
  std::vector<ExecutionPlan> also = {};
};

struct SpaceCounts {
  std::uint64_t kept = 0;
  std::uint64_t illegal = 0;   ///< heads, layers, samples
  std::uint64_t memory = 0;    ///< too large for a device on its own
  std::uint64_t dominated = 0; ///< another one is as good in everything
};

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
    std::int32_t home = -1;   ///< index of the call that trains its role
    std::int32_t leader = -1; ///< .. or the one that its role follows
    bool trains = false;
    /// Its weights come by a move, unless it shares the replica of its home.
    bool reads_home() const {
      return home >= 0 && !trains;
    }
    /// Of a device, over all options, also those that do not fit.
    std::uint64_t smallest_bytes = ~std::uint64_t{0};
  };

  const PlanProblem& problem() const {
    return problem_;
  }
  /// Calls with devices, in workflow order.
  const std::vector<SpaceCall>& calls() const {
    return calls_;
  }
  const SpaceCounts& counts() const {
    return counts_;
  }
  std::uint32_t num_devices() const {
    return problem_.cluster.num_devices();
  }
  /// That all of its nodes have for their devices; else one a device.
  double num_cores() const;
  std::uint64_t memory_bytes() const; ///< of a device; huge if not known

  /// The first position from `from` on at which a mesh of `count` devices lies
  /// well; past the end if there is none.
  std::uint32_t align(std::uint32_t from, std::uint32_t count) const;

  Placement placement(const CallOption& option, std::uint32_t position) const;
  /// Whether a call shares the replica of its home.
  static bool shares(const CallOption& option, std::uint32_t position,
                     const CallOption& home, std::uint32_t home_position);
  /// Seconds a step to bring the home's or leader's weights to the option;
  /// remembered.
  double move_s(std::size_t call, std::uint32_t option, std::uint32_t position,
                std::uint32_t home_option, std::uint32_t home_position) const;
  /// Of the master for all calls of a step (`Hardware::call_device_s`).
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

  std::int32_t trainer_of(const std::string& role) const;
  bool fills_memory();
  std::vector<std::uint32_t> mesh_sizes() const;
  void add_options(SpaceCall& call);
  void add_placement(SpaceCall& call, const ExecutionPlan& plan);
  const StageBytes& stage_of(const std::string& role, Strategy strategy);
  void add_strategies(SpaceCall& call, std::uint32_t num_devices);
  void add_variants(SpaceCall& call, CallOption option);
  void add_batchings(SpaceCall& call, CallOption option,
                     const StageBytes& stage, int most);
  std::vector<RoleMemory> may_leave(const SpaceCall& call,
                                    const StageBytes& stage) const;
  void add_option(SpaceCall& call, CallOption option, const StageBytes& stage);
  void add_with_answers(SpaceCall& call, CallOption option,
                        const StageBytes& stage);
  void prune(SpaceCall& call);

  const PlanProblem& problem_;
  const CostModel& costs_;
  SpaceLimits limits_;
  bool is_tight_ = false; ///< memory, for all roles together
  std::vector<SpaceCall> calls_;
  SpaceCounts counts_;
  std::map<std::string, std::string> alike_; ///< a role of equal shape
  std::map<std::pair<std::string, Strategy>, StageBytes> stages_;
  mutable std::unordered_map<MoveKey, double, MoveKeyHash> moves_s_;
};

/// The plan that a point means.
ExecutionPlan plan_at(const SearchSpace& space, const SpacePoint& point,
                      const std::map<std::string, std::uint32_t>& lag);

/// The same with the cluster's devices replaced by the runs between the ends of
/// meshes: as many as there are different ones, so simulating is fast.
ExecutionPlan small_plan_at(const SearchSpace& space, const SpacePoint& point,
                            const std::map<std::string, std::uint32_t>& lag);

/// The same options in so many chunks; false where there are none.
bool cut_into_chunks(const SearchSpace& space, SpacePoint& point, int count);

/// The fullest device of a point; calls that are not chosen count nothing.
std::uint64_t peak_bytes(const SearchSpace& space, const SpacePoint& point);
/// That device and the call that needs most there.
struct SpacePeak {
  std::uint64_t bytes = 0;
  std::uint32_t device = 0;
  std::size_t call = 0; ///< of the space
};
SpacePeak peak_of(const SearchSpace& space, const SpacePoint& point);

} // namespace troupe::plans
