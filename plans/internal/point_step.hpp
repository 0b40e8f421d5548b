// Points of a space as steps of whole calls without lag (fast_step.hpp): the
// tasks that make_step_graph would make of the point's plan, in its order,
// without those that take no time to give memory back (total_order.hpp).
#pragma once

#include "plans/internal/fast_step.hpp"
#include "plans/search_space.hpp"

#include <cstdint>
#include <vector>

namespace troupe::plans::internal {

class PointStep {
public:
  /// `space` must outlive this.
  explicit PointStep(const SearchSpace& space);

  /// Whether no call of the point has chunks.
  bool applies_to(const SpacePoint& point) const;
  double seconds(const SpacePoint& point) const;

private:
  using TaskSet = FastStep::TaskSet;
  static constexpr std::int32_t on_host = -1;
  /// Calls of a role that is trained, as tasks (numbers in the workflow).
  struct TrainedRole {
    std::vector<std::uint32_t> readers = {};
    std::vector<std::uint32_t> trains = {};
  };
  /// Calls of a role that follows, and of those that train its leader.
  struct Follower {
    std::vector<std::uint32_t> readers = {};
    std::uint32_t first_train = 0;
    std::uint32_t last_train = 0;
    TaskSet trains = 0;
  };
  /// A blend waits for what takes planes away behind these trainings.
  struct PointBlend {
    std::uint32_t task = 0;
    TaskSet trains = 0; ///< of its leader
  };
  /// Planes that come for a call of the space.
  RoleMemory comes_for(const SpacePoint& point, std::uint32_t call) const;
  /// Whether others may run on the devices of `readers` before they do.
  bool others_come_first(const FastStep& step, TaskSet readers) const;
  /// The training of the same role before a training.
  TaskSet trained_before(std::uint32_t task) const;

  const CallOption& option(const SpacePoint& point, std::uint32_t call) const;
  bool same_replica(const SpacePoint& point, std::uint32_t a,
                    std::uint32_t b) const;
  std::vector<std::uint64_t> device_bits(const SpacePoint& point) const;
  void add_role(const SpacePoint& point, const TrainedRole& role,
                FastStep& step) const;
  TaskSet replica_of(const SpacePoint& point, std::uint32_t reader,
                     const std::vector<std::uint32_t>& readers) const;
  void add_follower(const SpacePoint& point, const Follower& role,
                    FastStep& step, std::vector<PointBlend>& blends) const;
  void add_stays(const SpacePoint& point, FastStep& step,
                 const std::vector<PointBlend>& blends) const;

  const SearchSpace& space_;
  std::vector<std::int32_t> in_space_; ///< by task: call of the space, or host
  std::vector<std::uint32_t> task_of_; ///< by call of the space
  std::vector<TaskSet> producers_;     ///< by task
  std::vector<TaskSet> after_;         ///< by task: what waits for it
  /// By call of the space: the calls that say what leaves the replicas of its
  /// role; those that train it, if any do.
  std::vector<std::vector<std::uint32_t>> say_;
  std::vector<TrainedRole> trained_; ///< in the workflow's order of roles
  std::vector<Follower> followers_;  ///< likewise
};

} // namespace troupe::plans::internal
