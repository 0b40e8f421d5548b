#include "plans/search/search_step.hpp"

#include "plans/weights/residency.hpp"
#include "plans/workflow/call_levels.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace troupe::plans::internal {

namespace {

constexpr BitmaskStep::TaskSet point_bit(std::uint32_t task) {
  return BitmaskStep::TaskSet{1} << task;
}

} // namespace

SearchStep::SearchStep(const SearchSpace& space) : space_(space) {
  const auto& workflow = space.problem().workflow;
  std::int32_t number = 0;
  for (std::uint32_t i = 0; i < workflow.calls.size(); ++i) {
    const bool placed = workflow.calls[i].kind != CallKind::function;
    in_space_.push_back(placed ? number++ : on_host);
    if (placed)
      task_of_.push_back(i);
    TaskSet needs = 0;
    for (const auto producer : producers(workflow, i))
      needs |= point_bit(static_cast<std::uint32_t>(producer));
    producers_.push_back(needs);
  }
  const auto awaited = awaited_calls(workflow);
  after_.resize(workflow.calls.size());
  for (std::uint32_t i = 0; i < awaited.size(); ++i)
    for (std::uint32_t k = 0; k < awaited.size(); ++k)
      if (awaited[i][k])
        after_[k] |= point_bit(i);
  const auto calls_of = [&](const std::string& role) {
    TrainedRole calls;
    for (std::uint32_t i = 0; i < workflow.calls.size(); ++i)
      if (workflow.calls[i].role == role)
        (workflow.calls[i].kind == CallKind::train ? calls.trains
                                                   : calls.readers)
          .push_back(i);
    return calls;
  };
  const auto& calls = space.calls();
  for (const auto& call : calls) {
    say_.emplace_back();
    for (std::uint32_t i = 0; i < calls.size(); ++i)
      if (calls[i].call->role == call.call->role && !calls[i].reads_home())
        say_.back().push_back(i);
  }
  for (const auto& role : workflow.roles) {
    if (role.trained)
      trained_.push_back(calls_of(role.name));
    if (!role.ema)
      continue;
    const auto tracked = calls_of(role.ema->role);
    ema_models_.push_back({.readers = calls_of(role.name).readers,
                           .first_train = tracked.trains.front(),
                           .last_train = tracked.trains.back(),
                           .trains = 0});
    for (const auto train : tracked.trains)
      ema_models_.back().trains |= point_bit(train);
  }
}

bool SearchStep::applies_to(const SpacePoint& point) const {
  for (std::size_t i = 0; i < point.options.size(); ++i)
    if (space_.calls()[i].options[point.options[i]].chunks != 1)
      return false;
  return true;
}

const CallOption& SearchStep::option(const SpacePoint& point,
                                     std::uint32_t call) const {
  return space_.calls()[call].options[point.options[call]];
}

bool SearchStep::same_replica(const SpacePoint& point, std::uint32_t a,
                              std::uint32_t b) const {
  const auto& one = option(point, a);
  const auto& other = option(point, b);
  return point.positions[a] == point.positions[b]
         && one.num_devices == other.num_devices
         && one.strategy == other.strategy;
}

/// Returns for each call of the space a bit per run between the ends of meshes.
std::vector<std::uint64_t>
SearchStep::device_bits(const SpacePoint& point) const {
  std::vector<std::uint32_t> ends;
  for (std::uint32_t i = 0; i < point.positions.size(); ++i) {
    ends.push_back(point.positions[i]);
    ends.push_back(point.positions[i] + option(point, i).num_devices);
  }
  std::ranges::sort(ends);
  ends.erase(std::ranges::unique(ends).begin(), ends.end());
  std::vector<std::uint64_t> bits(point.positions.size(), 0);
  for (std::uint32_t i = 0; i < bits.size(); ++i) {
    const auto first = point.positions[i];
    const auto end = first + option(point, i).num_devices;
    for (std::uint32_t k = 0; k + 1 < ends.size(); ++k)
      if (ends[k] >= first && ends[k] < end)
        bits[i] |= std::uint64_t{1} << k;
  }
  return bits;
}

double SearchStep::seconds(const SpacePoint& point) const {
  BitmaskStep step;
  const auto devices = device_bits(point);
  for (std::size_t i = 0; i < in_space_.size(); ++i) {
    BitmaskStep::Task task{.needs = producers_[i]};
    if (in_space_[i] != on_host) {
      const auto call = static_cast<std::uint32_t>(in_space_[i]);
      const auto& chosen = option(point, call);
      task.seconds = chosen.seconds + chosen.around.update_s;
      task.devices = devices[call];
    }
    step.add(task);
  }
  for (const auto& role : trained_)
    add_role(point, role, step);
  std::vector<PointEma> ema_updates;
  for (const auto& role : ema_models_)
    add_ema_model(point, role, step, ema_updates);
  add_stays(point, step, ema_updates);
  return std::max(step.seconds(), space_.master_s(point));
}

double SearchStep::path_s(const SpacePoint& point) const {
  std::array<double, BitmaskStep::most_tasks> end_s;
  double longest_s = 0;
  for (std::size_t i = 0; i < in_space_.size(); ++i) { // writers come first
    end_s[i] = 0;
    for (auto needs = producers_[i]; needs != 0; needs &= needs - 1)
      end_s[i] = std::max(end_s[i], end_s[std::countr_zero(needs)]);
    if (in_space_[i] != on_host)
      end_s[i]
        += option(point, static_cast<std::uint32_t>(in_space_[i])).seconds;
    longest_s = std::max(longest_s, end_s[i]);
  }
  return longest_s;
}

/// Returns those of `readers` that share the replica of `reader`.
SearchStep::TaskSet
SearchStep::replica_of(const SpacePoint& point, std::uint32_t reader,
                       const std::vector<std::uint32_t>& readers) const {
  const auto call = static_cast<std::uint32_t>(in_space_[reader]);
  TaskSet found = 0;
  for (const auto other : readers)
    if (same_replica(point, call, static_cast<std::uint32_t>(in_space_[other])))
      found |= point_bit(other);
  return found;
}

bool SearchStep::others_come_first(const BitmaskStep& step,
                                   TaskSet readers) const {
  const auto first = static_cast<std::uint32_t>(std::countr_zero(readers));
  return std::ranges::any_of(task_of_, [&](std::uint32_t task) {
    return (point_bit(task) & (readers | after_[first])) == 0
           && (step[task].devices & step[first].devices) != 0;
  });
}

/// Orders trainings one after the other, and readers of the home replica before
/// them. Other replicas are first refreshed by a move.
void SearchStep::add_role(const SpacePoint& point, const TrainedRole& role,
                          BitmaskStep& step) const {
  for (std::size_t i = 1; i < role.trains.size(); ++i)
    step.add_needs(role.trains[i], point_bit(role.trains[i - 1]));
  const auto first_train = role.trains.front();
  const auto home = static_cast<std::uint32_t>(in_space_[first_train]);
  TaskSet seen = 0;
  for (const auto reader : role.readers) {
    if ((seen & point_bit(reader)) != 0)
      continue;
    const auto call = static_cast<std::uint32_t>(in_space_[reader]);
    const bool at_home
      = SearchSpace::shares(option(point, call), point.positions[call],
                            option(point, home), point.positions[home]);
    const auto readers = replica_of(point, reader, role.readers);
    seen |= readers;
    if (at_home) {
      step.add_needs(first_train, readers);
      continue;
    }
    const auto devices = step[reader].devices;
    const bool waits = others_come_first(step, readers);
    const auto move
      = step.add({.seconds = space_.move_s(
                    call, point.options[call], point.positions[call],
                    point.options[home], point.positions[home]),
                  .devices = devices | step[first_train].devices,
                  .follows = waits ? step[reader].needs : 0});
    if (waits)
      step.put_first(reader);
    step.add_needs(first_train, point_bit(move));
    for (const auto other : role.readers)
      if ((readers & point_bit(other)) != 0)
        step.add_needs(other, point_bit(move));
  }
}

/// Updates the replicas of an EMA role after their readers.
void SearchStep::add_ema_model(const SpacePoint& point, const EmaModel& role,
                               BitmaskStep& step,
                               std::vector<PointEma>& ema_updates) const {
  const auto home = static_cast<std::uint32_t>(in_space_[role.first_train]);
  TaskSet seen = 0;
  for (const auto reader : role.readers) {
    if ((seen & point_bit(reader)) != 0)
      continue;
    const auto call = static_cast<std::uint32_t>(in_space_[reader]);
    const auto readers = replica_of(point, reader, role.readers);
    seen |= readers;
    const auto ema_update = step.add(
      {.seconds
       = space_.move_s(call, point.options[call], point.positions[call],
                       point.options[home], point.positions[home]),
       .devices = step[reader].devices | step[role.first_train].devices,
       .needs = readers | point_bit(role.last_train)});
    ema_updates.push_back({ema_update, role.trains});
  }
}

SearchStep::TaskSet SearchStep::trained_before(std::uint32_t task) const {
  for (const auto& role : trained_)
    for (std::size_t i = 1; i < role.trains.size(); ++i)
      if (role.trains[i] == task)
        return point_bit(role.trains[i - 1]);
  return 0;
}

/// Returns what home offloads for calls that share its replica; a dropped
/// replica gets its planes from the move.
RoleMemory SearchStep::comes_for(const SpacePoint& point,
                                 std::uint32_t call) const {
  const auto& mine = space_.calls()[call];
  RoleMemory leaves;
  for (const auto i : say_[call]) {
    const auto& offload = option(point, i).offload;
    leaves.offload_weights |= offload.offload_weights;
    leaves.offload_optimizer |= offload.offload_optimizer;
  }
  const auto home = static_cast<std::uint32_t>(mine.home);
  if (mine.reads_home()
      && !SearchSpace::shares(option(point, call), point.positions[call],
                              option(point, home), point.positions[home]))
    return {};
  return used_by(*mine.call, leaves);
}

/// Adds a reload before each call that uses offloaded planes; only a training
/// writes them back, as only it changes them.
void SearchStep::add_stays(const SpacePoint& point, BitmaskStep& step,
                           const std::vector<PointEma>& ema_updates) const {
  for (const auto task : task_of_) {
    const auto call = static_cast<std::uint32_t>(in_space_[task]);
    const auto planes = comes_for(point, call);
    if (planes == RoleMemory{})
      continue;
    const auto seconds = option(point, call).planes_s(planes);
    const auto devices = step[task].devices;
    const auto before = trained_before(task);
    const auto reload = step.add({.seconds = seconds,
                                  .devices = devices,
                                  .needs = before,
                                  .follows = step[task].needs & ~before});
    step.add_needs(task, point_bit(reload));
    step.put_first(task);
    if (!space_.calls()[call].trains)
      continue;
    const auto offload = step.add({.seconds = seconds,
                                   .devices = devices,
                                   .needs = point_bit(task),
                                   .first = true});
    for (const auto& ema_update : ema_updates)
      if ((ema_update.trains & point_bit(task)) != 0)
        step.add_needs(ema_update.task, point_bit(offload));
  }
}

} // namespace troupe::plans::internal
