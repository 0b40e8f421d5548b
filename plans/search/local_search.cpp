#include "plans/search/local_search.hpp"

#include "plans/simulate/simulator.hpp"
#include "plans/weights/residency.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace troupe::plans {

namespace {

constexpr std::size_t remembered_points = 6;
constexpr double infinite_s = std::numeric_limits<double>::infinity();
/// Sums in another order differ by less, as a share.
constexpr double rounding = 1e-9;

bool is_same_but_offload(const CallOption& a, const CallOption& b) {
  return a.num_devices == b.num_devices && a.kinds == b.kinds
         && a.strategy == b.strategy && a.micro_batches == b.micro_batches
         && a.chunks == b.chunks && a.responses == b.responses;
}

} // namespace

double PointCost::step_s(const SpacePoint& point) {
  return step_s_below(infinite_s, point);
}

double PointCost::step_s_below(double limit_s, const SpacePoint& point) {
  if (peak_bytes(space_, point) > space_.memory_bytes())
    return infinite_s;
  ++evaluations_;
  const bool is_fast
    = lag_.empty() && !cores_.any() && whole_step_.applies_to(point);
  if (is_fast && best_.size() == remembered_points
      && whole_step_.path_s(point) * (1 - rounding)
           >= std::max(limit_s, best_.back().step_s))
    return infinite_s;
  const auto step_s = is_fast ? whole_step_.seconds(point) : scheduled_s(point);
  remember(step_s, point);
  return step_s;
}

double PointCost::scheduled_s(const SpacePoint& point) const {
  const auto& workflow = space_.problem().workflow;
  const auto plan = cores_.any() ? plan_at(space_, point, lag_)
                                 : small_plan_at(space_, point, lag_);
  const auto replicas = replicas_of(workflow, plan);
  const auto graph = make_step_graph(workflow, plan, replicas);
  const auto& calls = space_.calls();
  const auto index = [&](const std::string& name) {
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (calls[i].call->name == name)
        return i;
    return calls.size();
  };
  TaskSeconds times{.cores = cores_};
  for (const auto& task : graph.tasks) {
    const bool moves = task.kind == TaskKind::move;
    const auto i
      = index(moves ? replicas[*task.target].calls.front() : task.call);
    double seconds = 0, first_s = 0, use = 1;
    if (i < calls.size() && moves) {
      const auto k = static_cast<std::size_t>(
        calls[i].tracked >= 0 ? calls[i].tracked : calls[i].home);
      seconds = space_.move_s(i, point.options[i], point.positions[i],
                              point.options[k], point.positions[k]);
    } else if (i < calls.size() && task.kind == TaskKind::call) {
      const auto& option = calls[i].options[point.options[i]];
      first_s = option.seconds;
      use = option.use;
      seconds = task.part.chunk == 0 ? first_s : option.later_s;
    } else if (i < calls.size() && task.kind == TaskKind::update) {
      seconds = calls[i].options[point.options[i]].around.update_s;
    } else if (i < calls.size() && task.kind != TaskKind::drop) {
      const auto& option = calls[i].options[point.options[i]];
      const auto& replica = replicas[*task.target];
      if (task.kind == TaskKind::reload
          || is_written_back(workflow, replica, *calls[i].call))
        seconds = option.planes_s(
          used_by(*calls[i].call, leaves(workflow, plan, replica)));
    }
    times.all.push_back(seconds);
    times.use.push_back(use);
    times.begins_batch.push_back(std::max(seconds, first_s));
  }
  const auto steps = steps_to_simulate(graph);
  return std::max(
    space_.master_s(point),
    steady_step_s(graph, run_schedule(graph, times, steps), steps));
}

void PointCost::remember(double step_s, const SpacePoint& point) {
  if (best_.size() == remembered_points && step_s >= best_.back().step_s)
    return;
  const auto same
    = std::ranges::find(best_, point.options, [](const Scored& scored) {
        return scored.point.options;
      });
  if (same != best_.end()) {
    if (same->step_s <= step_s)
      return;
    best_.erase(same);
  }
  const auto at = std::ranges::lower_bound(best_, step_s, {}, &Scored::step_s);
  best_.insert(at, {step_s, point});
  if (best_.size() > remembered_points)
    best_.pop_back();
}

Walk::Walk(const SearchSpace& space, PointCost& cost, WalkLimits limits,
           std::uint64_t seed)
  : space_(space),
    cost_(cost),
    limits_(limits),
    random_(seed),
    first_evaluation_(cost.evaluations()) {}

bool Walk::ended() const {
  if (limits_.stop && limits_.stop->load(std::memory_order_relaxed))
    return true;
  if (limits_.seconds > 0)
    return watch_.seconds() > limits_.seconds;
  return cost_.evaluations() - first_evaluation_ >= limits_.evaluations;
}

/// Draws the same numbers on every platform, unlike standard distributions.
std::uint32_t Walk::draw(std::size_t below) {
  return static_cast<std::uint32_t>(random_() % below);
}

SpacePoint Walk::random_point() {
  SpacePoint point;
  for (const auto& call : space_.calls()) {
    auto option = draw(call.options.size());
    for (std::size_t i = 0; i < call.options.size(); ++i)
      if (!may_have(call.options[option]))
        option = (option + 1) % static_cast<std::uint32_t>(call.options.size());
    const auto& chosen = call.options[option];
    std::vector<std::uint32_t> positions;
    for (auto at = space_.align(0, chosen);
         at + chosen.num_devices <= space_.num_devices();
         at = space_.align(at + 1, chosen))
      positions.push_back(at);
    point.options.push_back(option);
    point.positions.push_back(positions[draw(positions.size())]);
  }
  return point;
}

bool Walk::find_start(SpacePoint& point) {
  constexpr int tries = 30;
  point = {};
  for (const auto& call : space_.calls()) {
    const auto whole
      = std::ranges::find_if(call.options, [&](const auto& option) {
          return option.num_devices == space_.num_devices() && may_have(option);
        });
    const auto chosen
      = whole == call.options.end() ? call.options.begin() : whole;
    point.options.push_back(
      static_cast<std::uint32_t>(chosen - call.options.begin()));
    point.positions.push_back(space_.align(0, *chosen));
  }
  auto fits = shrink(point);
  for (int i = 0; i <= tries && !fits; ++i) {
    auto other = i < tries ? random_point() : leanest_point();
    fits = shrink(other);
    if (peak_bytes(space_, other) < peak_bytes(space_, point))
      point = std::move(other);
  }
  return fits;
}

SpacePoint Walk::leanest_point() const {
  SpacePoint point;
  for (const auto& call : space_.calls()) {
    const auto bytes_of = [&](const CallOption& option) {
      return std::tuple{!may_have(option), option.static_bytes,
                        option.weight_bytes + option.active_bytes};
    };
    const auto leanest = std::ranges::min_element(call.options, {}, bytes_of);
    point.options.push_back(
      static_cast<std::uint32_t>(leanest - call.options.begin()));
    point.positions.push_back(space_.align(0, *leanest));
  }
  return point;
}

bool Walk::shrink(SpacePoint& point) const {
  auto least = peak_bytes(space_, point);
  const auto improve = [&](std::size_t call) {
    bool improved = false;
    for (const auto& candidate : candidates(point, call)) {
      auto next = point;
      next.options[call] = candidate.option;
      next.positions[call] = candidate.position;
      const auto peak = peak_bytes(space_, next);
      if (peak >= least)
        continue;
      least = peak;
      point = std::move(next);
      improved = true;
    }
    return improved;
  };
  for (bool improved = true; improved && least > space_.memory_bytes();) {
    improved = false;
    for (std::size_t call = 0; call < point.options.size(); ++call)
      improved = improve(call) || improved;
  }
  return least <= space_.memory_bytes();
}

/// Returns the positions of an option that begin at `starts` or end where the
/// line or nodes of one kind do.
std::vector<std::uint32_t>
Walk::positions_of(const CallOption& option,
                   const std::vector<std::uint32_t>& starts) const {
  auto ends = space_.kind_starts();
  ends.push_back(space_.num_devices());
  std::vector<std::uint32_t> positions;
  for (const auto end : ends)
    if (end >= option.num_devices)
      positions.push_back(space_.align(end - option.num_devices, option));
  for (const auto start : starts)
    positions.push_back(space_.align(start, option));
  std::ranges::sort(positions);
  positions.erase(std::ranges::unique(positions).begin(), positions.end());
  return positions;
}

/// Returns each option at the positions that may matter: at the ends of the
/// line, of its kinds of nodes and of the other calls' meshes.
std::vector<Walk::Candidate> Walk::candidates(const SpacePoint& point,
                                              std::size_t call) const {
  auto starts = space_.kind_starts();
  for (std::size_t i = 0; i < point.positions.size(); ++i) {
    const auto& option = space_.calls()[i].options[point.options[i]];
    starts.push_back(point.positions[i]);
    starts.push_back(point.positions[i] + option.num_devices);
  }
  std::map<std::pair<std::uint32_t, KindSet>, std::vector<std::uint32_t>> known;
  std::vector<Candidate> all;
  const auto& options = space_.calls()[call].options;
  const auto line = space_.num_devices();
  for (std::uint32_t i = 0; i < options.size(); ++i) {
    if (!may_have(options[i]))
      continue;
    const auto count = options[i].num_devices;
    auto& positions = known[{count, options[i].kinds}];
    if (positions.empty())
      positions = positions_of(options[i], starts);
    for (const auto at : positions)
      if (at + count <= line)
        all.push_back({i, at});
  }
  return all;
}

double Walk::descend(SpacePoint& point) {
  auto best_s = cost_.step_s(point);
  for (bool improved = true; improved && !ended();) {
    improved = false;
    for (std::size_t call = 0; call < point.options.size(); ++call)
      improved = improve_call(point, call, best_s) || improved;
    if (improved)
      continue;
    const auto before_s = best_s;
    auto next = point;
    improve_offloads(next, 0, point, best_s);
    improved = best_s < before_s;
  }
  return best_s;
}

/// Tries every choice of planes that leave, from `call` on: what one call keeps
/// on a device another one has to give up.
void Walk::improve_offloads(SpacePoint& next, std::size_t call,
                            SpacePoint& point, double& best_s) {
  if (call == next.options.size())
    return take_better(next, point, best_s);
  const auto& options = space_.calls()[call].options;
  const auto chosen = next.options[call];
  for (std::uint32_t i = 0; i < options.size() && !ended(); ++i) {
    if (!is_same_but_offload(options[i], options[chosen]))
      continue;
    next.options[call] = i;
    improve_offloads(next, call + 1, point, best_s);
  }
  next.options[call] = chosen;
}

/// Sizes caches to the memory that the rest of the point leaves free: options
/// are fastest first, so the first that fits decodes most responses at once.
void Walk::fill_rooms(SpacePoint& point) const {
  for (std::size_t call = 0; call < point.options.size(); ++call) {
    const auto& options = space_.calls()[call].options;
    const auto& chosen = options[point.options[call]];
    if (chosen.responses == 0)
      continue;
    auto& option = point.options[call];
    option = chosen.most_responses;
    while (peak_bytes(space_, point) > space_.memory_bytes()
           && options[option].fewer_responses != option)
      option = options[option].fewer_responses;
  }
}

void Walk::take_better(SpacePoint next, SpacePoint& point, double& best_s) {
  fill_rooms(next);
  const auto below_s = best_s * (1 - 1e-9);
  const auto seconds = cost_.step_s_below(below_s, next);
  if (seconds >= below_s)
    return;
  best_s = seconds;
  point = std::move(next);
}

bool Walk::improve_call(SpacePoint& point, std::size_t call, double& best_s) {
  const auto before_s = best_s;
  for (const auto& candidate : candidates(point, call)) {
    const auto& option = space_.calls()[call].options[candidate.option];
    if (ended() || option.total_s() >= best_s)
      break; // fastest first: the rest is slower than a whole step
    if (option.most_responses != candidate.option)
      continue; // fill_rooms chooses among them
    auto next = point;
    next.options[call] = candidate.option;
    next.positions[call] = candidate.position;
    take_better(next, point, best_s);
  }
  return best_s < before_s;
}

void Walk::restart() {
  while (!ended()) {
    auto point = random_point();
    if (!shrink(point) && !find_start(point))
      return;
    descend(point);
  }
}

void Walk::anneal() {
  constexpr std::uint64_t moves_a_restart = 4000;
  SpacePoint point;
  while (!ended()) {
    if (!find_start(point))
      return;
    auto now_s = cost_.step_s(point);
    const auto start_s = now_s;
    for (std::uint64_t i = 0; i < moves_a_restart && !ended(); ++i) {
      const auto cold = double(i) / moves_a_restart;
      const auto temperature_s = 0.1 * start_s * std::pow(1e-3, cold);
      const auto call = draw(point.options.size());
      const auto all = candidates(point, call);
      const auto& candidate = all[draw(all.size())];
      auto next = point;
      next.options[call] = candidate.option;
      next.positions[call] = candidate.position;
      fill_rooms(next);
      const auto seconds = cost_.step_s(next);
      const auto chance = double(random_() >> 11) * 0x1p-53;
      if (seconds <= now_s
          || chance < std::exp((now_s - seconds) / temperature_s)) {
        point = std::move(next);
        now_s = seconds;
      }
    }
  }
}

} // namespace troupe::plans
