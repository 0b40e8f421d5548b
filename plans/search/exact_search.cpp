#include "plans/search/exact_search.hpp"

#include "plans/search/first_fits.hpp"
#include "plans/search/level_entries.hpp"
#include "plans/search/level_shapes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

namespace troupe::plans {

namespace {

using internal::FirstFits;
using internal::level_patterns;
using internal::LevelEntries;
using internal::LevelEntry;
using internal::LevelShapes;
using internal::NodeCount;
using internal::pattern_seconds;

constexpr double never = std::numeric_limits<double>::infinity();

class BranchAndBound {
public:
  BranchAndBound(const ExactInstance& instance, double known_s,
                 const std::atomic<bool>* stop, std::uint64_t node_limit)
    : instance_(instance),
      nodes_(stop, node_limit),
      best_s_(known_s > 0 ? known_s : never) {
    point_.options.assign(instance.calls.size(), not_chosen);
    point_.positions.assign(instance.calls.size(), 0);
    for (std::uint32_t i = 0; i < instance.levels.size(); ++i)
      levels_.emplace_back(instance, i, point_);
    const auto others
      = std::ranges::stable_partition(levels_, [&](const Level& level) {
          return std::ranges::any_of(
            level.shapes.calls(),
            [&](std::uint32_t call) { return instance.calls[call].trains; });
        });
    trainings_ = levels_.size() - others.size();
    beside_s_.resize(levels_.size());
  }

  ExactResult run() {
    for (const auto& level : levels_)
      result_.lower_bound_s += level.shapes.least_s();
    if (result_.lower_bound_s == never) {
      result_.lower_bound_s = 0; // a call has no option at all
      result_.proved = true;
      return result_;
    }
    descend(0, 0);
    result_.nodes = nodes_.nodes();
    result_.proved = !nodes_.stopped()
                     && std::ranges::none_of(levels_, [](const Level& level) {
                          return level.shapes.is_cut();
                        });
    return result_;
  }

private:
  struct Level {
    Level(const ExactInstance& instance, std::uint32_t level,
          const SpacePoint& nothing)
      : shapes(instance, instance.levels[level]),
        number(level),
        beside_trainings(instance, shapes.num_groups()),
        beside_homes(instance, shapes.num_groups()) {
      beside_trainings.reset(nothing);
    }
    LevelShapes shapes;
    std::uint32_t number; ///< in the step
    FirstFits beside_trainings;
    FirstFits beside_homes;
  };

  /// Visits the entries of a level, given the calls of `point`.
  template <class Limit, class More, class Visit>
  void each_entry(Level& level, FirstFits& first_fits, SpacePoint& point,
                  Limit limit, More more, Visit visit) {
    LevelEntries(instance_, level.shapes, first_fits, nodes_, point, limit,
                 more, visit)
      .visit_all();
  }
  static double no_more() {
    return 0;
  }

  void descend(std::size_t depth, double before_s) {
    if (depth == levels_.size())
      return finish(before_s);
    auto& level = levels_[depth];
    const auto others_s = least_before(depth);
    each_entry(
      level, level.beside_trainings, point_,
      [&] { return best_s_ - before_s - others_s; },
      [&] { return depth < trainings_ ? least_before(depth) - others_s : 0; },
      [&](const LevelEntry& entry) { take_entry(depth, before_s, entry); });
  }

  void finish(double levels_s) {
    if (levels_s >= best_s_)
      return;
    ++result_.leaves;
    const auto seconds = instance_.step_s ? instance_.step_s(point_) : levels_s;
    if (seconds >= best_s_)
      return;
    best_s_ = seconds;
    result_.found = true;
    result_.point = point_;
    result_.seconds = seconds;
  }

  void take_entry(std::size_t depth, double before_s, LevelEntry entry) {
    const auto& level = levels_[depth];
    const auto after_s
      = before_s
        + entry_s(
          level, entry, point_,
          [&](auto call) { return counts_move(level, call); },
          [&](auto call) { return counts_reload(level, call); },
          best_s_ - before_s - least_before(depth));
    if (depth + 1 == trainings_ && !fits_beside_trainings(after_s))
      return;
    if (after_s + least_behind(depth) < best_s_)
      descend(depth + 1, after_s);
  }

  /// Computes, once per choice of trainings, how fast the other levels can be
  /// given these. Returns false if one of them cannot be fast enough.
  bool fits_beside_trainings(double trainings_s) {
    for (auto i = trainings_; i < levels_.size(); ++i) {
      beside_s_[i] = least_of(levels_[i]);
      if (beside_s_[i] == never)
        return false;
      levels_[i].beside_trainings.reset(point_);
    }
    for (auto i = trainings_; i < levels_.size(); ++i) {
      const auto others_s = least_behind(trainings_ - 1) - beside_s_[i];
      const auto room_s = best_s_ - trainings_s - others_s;
      beside_s_[i] = least_beside(levels_[i], room_s);
      if (beside_s_[i] >= room_s || nodes_.stopped())
        return false;
    }
    return true;
  }

  /// Returns the least time of the entries that fit together with the
  /// trainings; at least `room_s` if none is faster.
  double least_beside(Level& level, double room_s) {
    auto point = point_;
    auto least_s = room_s;
    each_entry(
      level, level.beside_trainings, point, [&] { return least_s; }, no_more,
      [&](const LevelEntry& entry) {
        least_s = std::min(
          least_s,
          entry_s(
            level, entry, point, [&](auto) { return level.number == 0; },
            [&](auto call) { return counts_reload(level, call); }, least_s));
      });
    return least_s;
  }

  /// Returns the seconds of a level, with the moves and reloads that count; at
  /// least `limit_s` where it is found out early that they reach it.
  template <class Moves, class Reloads>
  double entry_s(const Level& level, const LevelEntry& entry,
                 const SpacePoint& point, Moves counts_move,
                 Reloads counts_reload, double limit_s) const {
    const auto& calls = level.shapes.calls();
    std::array<double, 3> seconds{};
    std::array<bool, 3> moves{};
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto& call = instance_.calls[calls[i]];
      const auto& option = call.options[entry.options[i]];
      seconds[i]
        = option.seconds + (counts_reload(calls[i]) ? option.comes_s : 0);
      moves[i] = call.home >= 0 && !call.trains && counts_move(calls[i]);
    }
    const auto with = [&](const auto& move_s) {
      auto all = seconds;
      for (std::size_t i = 0; i < calls.size(); ++i)
        if (moves[i] && move_s)
          all[i] += move_s(calls[i], point);
      return std::max(
        entry.seconds,
        pattern_seconds(level_patterns(calls.size())[entry.pattern],
                        {all.data(), calls.size()}));
    };
    const auto least_s = with(instance_.least_move_s);
    return least_s >= limit_s ? least_s : with(instance_.move_s);
  }

  bool share_a_device(std::uint32_t a, std::uint32_t b) const {
    const auto count = [&](std::uint32_t call) {
      return instance_.calls[call].options[point_.options[call]].num_devices;
    };
    return point_.positions[a] < point_.positions[b] + count(b)
           && point_.positions[b] < point_.positions[a] + count(a);
  }
  /// Returns whether `level` is the second one, after a single, chosen call
  /// that shares a device with `other`.
  bool runs_behind(const Level& level, std::uint32_t other) const {
    const auto& first = instance_.levels.front();
    return level.number == 1 && first.size() == 1
           && point_.options[first.front()] != not_chosen
           && share_a_device(first.front(), other);
  }
  /// Returns whether the step waits for the move of `call`, whenever it runs.
  bool counts_move(const Level& level, std::uint32_t call) const {
    const auto home = static_cast<std::uint32_t>(instance_.calls[call].home);
    return level.number == 0 || runs_behind(level, call)
           || runs_behind(level, home);
  }

  /// Returns whether the step waits for the reload before `call`, if it has
  /// one.
  bool counts_reload(const Level& level, std::uint32_t call) const {
    return level.number == 0 || runs_behind(level, call);
  }

  /// Returns the least time of the levels after `depth`, when those up to it
  /// are placed.
  double least_behind(std::size_t depth) {
    double sum = 0;
    for (auto i = depth + 1; i < levels_.size(); ++i)
      sum += depth + 1 < trainings_
               ? least_of(levels_[i])
               : std::max(least_of(levels_[i]), beside_s_[i]);
    return sum;
  }
  /// Returns the same before the level of `depth` is placed.
  double least_before(std::size_t depth) {
    if (depth >= trainings_)
      return least_behind(depth);
    double sum = 0;
    for (auto i = depth + 1; i < levels_.size(); ++i)
      sum += least_of(levels_[i]);
    return sum;
  }

  /// Returns whether a call of another level may wait for the same move, and
  /// pay for it.
  bool may_share_move(const Level& level, std::uint32_t call) const {
    const auto& calls = level.shapes.calls();
    for (std::uint32_t i = 0; i < instance_.calls.size(); ++i)
      if (instance_.calls[i].home == instance_.calls[call].home
          && !instance_.calls[i].trains
          && std::ranges::find(calls, i) == calls.end())
        return true;
    return false;
  }

  /// Returns the calls of a level that wait for moves from the `counted` homes.
  /// A second one with the same home may share the replica; where calls share
  /// cores, a move is not the work of a core.
  std::vector<std::uint32_t>
  moved_calls(const Level& level,
              const std::vector<std::uint32_t>& counted) const {
    std::vector<std::uint32_t> moved;
    if (std::isfinite(instance_.num_cores))
      return moved;
    for (const auto home : counted)
      for (const auto call : level.shapes.calls())
        if (instance_.calls[call].home == static_cast<std::int32_t>(home)) {
          moved.push_back(call);
          break;
        }
    return moved;
  }

  /// Returns the least time of all levels but one.
  double least_but(const Level& level) const {
    double sum = 0;
    for (const auto& other : levels_)
      sum += other.number == level.number ? 0 : other.shapes.least_s();
    return sum;
  }

  /// Returns a lower bound for a level with the chosen homes: with their moves,
  /// where these certainly count, and their memory.
  double least_of(Level& level) {
    std::vector<std::uint32_t> key = {level.number};
    for (const auto call : level.shapes.calls()) {
      const auto& one = instance_.calls[call];
      if (one.home < 0 || one.trains)
        continue;
      const auto home = static_cast<std::uint32_t>(one.home);
      if (point_.options[home] == not_chosen)
        return level.shapes.least_s();
      const bool counts = (level.number == 0 || runs_behind(level, home))
                          && !may_share_move(level, call);
      key.insert(key.end(), {home, point_.options[home], point_.positions[home],
                             counts ? 1u : 0u});
    }
    if (key.size() == 1)
      return level.shapes.least_s();
    const auto found = least_given_.find(key);
    if (found != least_given_.end())
      return found->second;
    const auto seconds = work_out_least(level, key);
    least_given_.emplace(std::move(key), seconds);
    return seconds;
  }

  /// Skips entries that reach the best plan's time with the least of the other
  /// levels: what is left for this level is the bound for all of them.
  double work_out_least(Level& level, const std::vector<std::uint32_t>& key) {
    SpacePoint point{
      .options = std::vector<std::uint32_t>(point_.options.size(), not_chosen),
      .positions = std::vector<std::uint32_t>(point_.options.size(), 0)};
    std::vector<std::uint32_t> counted; // homes
    for (std::size_t i = 1; i < key.size(); i += 4) {
      point.options[key[i]] = key[i + 1];
      point.positions[key[i]] = key[i + 2];
      if (key[i + 3] != 0)
        counted.push_back(key[i]);
    }
    const auto counts = [&](std::uint32_t call) {
      const auto home = static_cast<std::uint32_t>(instance_.calls[call].home);
      return std::ranges::find(counted, home) != counted.end();
    };
    level.beside_homes.reset(point, moved_calls(level, counted));
    auto least_s = best_s_ - least_but(level);
    each_entry(
      level, level.beside_homes, point, [&] { return least_s; }, no_more,
      [&](const LevelEntry& entry) {
        least_s = std::min(least_s,
                           entry_s(
                             level, entry, point, counts,
                             [&](auto) { return level.number == 0; }, least_s));
      });
    return nodes_.stopped() ? level.shapes.least_s() : least_s;
  }

  const ExactInstance& instance_;
  NodeCount nodes_;
  double best_s_;
  std::vector<Level> levels_; ///< trainings first
  std::size_t trainings_ = 0; ///< levels of them
  /// Seconds by level, given the chosen trainings.
  std::vector<double> beside_s_;
  std::map<std::vector<std::uint32_t>, double> least_given_;
  SpacePoint point_;
  ExactResult result_;
};

} // namespace

ExactResult exact_search(const ExactInstance& instance, double known_s,
                         const std::atomic<bool>* stop,
                         std::uint64_t node_limit) {
  return BranchAndBound(instance, known_s, stop, node_limit).run();
}

double level_makespan(const std::vector<double>& seconds,
                      const std::vector<std::uint32_t>& positions,
                      const std::vector<std::uint32_t>& num_devices) {
  std::vector<std::size_t> order(seconds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  auto best = std::numeric_limits<double>::infinity();
  do {
    std::vector<double> end(seconds.size(), 0);
    double last = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      double start = 0;
      for (std::size_t k = 0; k < i; ++k) {
        const auto a = order[i], b = order[k];
        const bool shared = positions[a] < positions[b] + num_devices[b]
                            && positions[b] < positions[a] + num_devices[a];
        start = shared ? std::max(start, end[b]) : start;
      }
      end[order[i]] = start + seconds[order[i]];
      last = std::max(last, end[order[i]]);
    }
    best = std::min(best, last);
  } while (std::ranges::next_permutation(order).found);
  return best;
}

} // namespace troupe::plans
