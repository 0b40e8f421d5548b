// Runs points of a space as steps of whole calls without lag
// (bitmask_step.hpp): the tasks that make_step_graph would make of the point's
// plan, in its order, without those that only free memory and take no time
// (total_order.hpp). The update of a call's servers is part of the call: what
// servers answer reads the data set, so little can come between.
#pragma once

#include "plans/search/bitmask_step.hpp"
#include "plans/search/search_space.hpp"

#include <cstdint>
#include <vector>

namespace troupe::plans::internal {

class SearchStep {
public:
  /// Keeps a reference: `space` must outlive this.
  explicit SearchStep(const SearchSpace& space);

  /// Returns whether no call of the point has chunks.
  bool applies_to(const SpacePoint& point) const;
  double seconds(const SpacePoint& point) const;
  /// Returns the seconds of the longest chain of calls that wait for each
  /// other: at most `seconds`, and no move is worked out for it.
  double path_s(const SpacePoint& point) const;

private:
  using TaskSet = BitmaskStep::TaskSet;
  static constexpr std::int32_t on_host = -1;
  /// Calls of a role that is trained, as tasks (numbers in the workflow).
  struct TrainedRole {
    std::vector<std::uint32_t> readers = {};
    std::vector<std::uint32_t> trains = {};
  };
  /// Readers of an EMA role, and the calls that train the tracked role.
  struct EmaModel {
    std::vector<std::uint32_t> readers = {};
    std::uint32_t first_train = 0;
    std::uint32_t last_train = 0;
    TaskSet trains = 0;
  };
  /// An EMA update; it waits for the offloads after these trainings.
  struct PointEma {
    std::uint32_t task = 0;
    TaskSet trains = 0; ///< of the tracked role
  };
  /// Returns the planes that are loaded for a call of the space.
  RoleMemory comes_for(const SpacePoint& point, std::uint32_t call) const;
  /// Returns whether others may run on the devices of `readers` before they do.
  bool others_come_first(const BitmaskStep& step, TaskSet readers) const;
  /// Returns the training of the same role before a training.
  TaskSet trained_before(std::uint32_t task) const;

  const CallOption& option(const SpacePoint& point, std::uint32_t call) const;
  bool same_replica(const SpacePoint& point, std::uint32_t a,
                    std::uint32_t b) const;
  std::vector<std::uint64_t> device_bits(const SpacePoint& point) const;
  void add_role(const SpacePoint& point, const TrainedRole& role,
                BitmaskStep& step) const;
  TaskSet replica_of(const SpacePoint& point, std::uint32_t reader,
                     const std::vector<std::uint32_t>& readers) const;
  void add_ema_model(const SpacePoint& point, const EmaModel& role,
                     BitmaskStep& step,
                     std::vector<PointEma>& ema_updates) const;
  void add_stays(const SpacePoint& point, BitmaskStep& step,
                 const std::vector<PointEma>& ema_updates) const;

  const SearchSpace& space_;
  std::vector<std::int32_t> in_space_; ///< by task: call of the space, or host
  std::vector<std::uint32_t> task_of_; ///< by call of the space
  std::vector<TaskSet> producers_;     ///< by task
  std::vector<TaskSet> after_;         ///< by task: what waits for it
  /// By call of the space: the calls whose options decide which planes leave
  /// the replicas of its role; those that train it, if any.
  std::vector<std::vector<std::uint32_t>> say_;
  std::vector<TrainedRole> trained_; ///< in the workflow's order of roles
  std::vector<EmaModel> ema_models_; ///< in the same order
};

} // namespace troupe::plans::internal
