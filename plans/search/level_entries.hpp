// Visits the choices of options and positions of one level that fit together
// with the calls chosen already and take less than a limit, shape by shape.
#pragma once

#include "plans/search/exact_search.hpp"
#include "plans/search/first_fits.hpp"
#include "plans/search/level_shapes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::plans::internal {

/// A level's choice of options and positions, given those of other levels.
struct LevelEntry {
  double seconds = 0; ///< without reloads; of moves at most what counts
  std::array<std::uint32_t, 3> options = {}; ///< by call of the level
  std::uint32_t pattern = 0;
};

/// Counts nodes, and ends a search at its limit or when asked to.
class NodeCount {
public:
  NodeCount(const std::atomic<bool>* stop, std::uint64_t limit)
    : stop_(stop),
      limit_(limit) {}
  bool should_stop() {
    const bool asked = stop_ && stop_->load(std::memory_order_relaxed);
    stopped_ = stopped_ || asked || nodes_ > limit_;
    return stopped_;
  }
  bool stopped() const {
    return stopped_;
  }
  void add() {
    ++nodes_;
  }
  std::uint64_t nodes() const {
    return nodes_;
  }

private:
  const std::atomic<bool>* stop_;
  std::uint64_t limit_;
  std::uint64_t nodes_ = 0;
  bool stopped_ = false;
};

/// `limit()` may decrease meanwhile. `more()` is what other levels take beyond
/// that limit at least, given the calls of the point; it is at least 0 and
/// depends on calls with homes in other levels only. During a visit the point
/// contains the entry's choice.
template <class Limit, class More, class Visit>
class LevelEntries {
public:
  /// Keeps references.
  LevelEntries(const ExactInstance& instance, LevelShapes& shapes,
               FirstFits& first_fits, NodeCount& nodes, SpacePoint& point,
               Limit limit, More more, Visit visit)
    : instance_(instance),
      shapes_(shapes),
      calls_(shapes.calls()),
      first_fits_(first_fits),
      nodes_(nodes),
      point_(point),
      limit_(limit),
      more_(more),
      visit_(visit) {}

  /// Visits all entries, those of the fastest shapes first.
  void visit_all() {
    for (std::size_t i = 0; const auto* at = shapes_.at(i); ++i) {
      shape_ = *at;
      if (shape_.least_s >= limit_() || nodes_.should_stop())
        return;
      for (const auto& positions : *shape_.positions) {
        positions_ = &positions;
        if (begin())
          choose(0, 0);
      }
    }
  }

private:
  /// Finds the first option of each call; returns false if a call has none.
  bool begin() {
    entry_ = {.pattern = shape_.pattern};
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const auto& group = *shape_.groups[i];
      const auto fit = first_fits_.of(calls_[i], group, (*positions_)[i]);
      if (fit.first == group.options.size())
        return false;
      first_[i] = fit.first;
      seconds_[i] = fit.least_s;
    }
    return true;
  }

  /// Chooses an option for the `depth`-th call and those after it; the others
  /// have what their choice takes, later ones the least that theirs can take.
  void choose(std::size_t depth, double more_s) {
    if (depth == calls_.size()) {
      ++tried_;
      return visit_(entry_);
    }
    const auto& options = shape_.groups[depth]->options;
    const auto least_s = seconds_[depth];
    for (auto k = first_[depth]; k < options.size(); ++k) {
      const auto option_s = shapes_.option_s(depth, options[k]);
      seconds_[depth] = std::max(option_s, least_s);
      if (reaches_limit(more_s) || nodes_.should_stop())
        break; // options are fastest first, but for their moves
      nodes_.add();
      if (!take(depth, options[k], option_s, more_s))
        continue;
      if (!choose_later(depth, more_s))
        break;
    }
    seconds_[depth] = least_s;
    point_.options[calls_[depth]] = not_chosen;
  }

  bool reaches_limit(double more_s) {
    entry_.seconds = shapes_.seconds(shape_, seconds_);
    return entry_.seconds + more_s >= limit_();
  }

  /// Puts an option into the point; returns whether it fits and, with its move,
  /// is below the limit.
  bool take(std::size_t depth, std::uint32_t option, double option_s,
            double more_s) {
    const auto call = calls_[depth];
    entry_.options[depth] = option;
    point_.options[call] = option;
    point_.positions[call] = (*positions_)[depth];
    if (!instance_.fits(point_))
      return false;
    if (!first_fits_.is_moved(call)) {
      seconds_[depth] = option_s;
      return !reaches_limit(more_s);
    }
    seconds_[depth] = option_s + first_fits_.least_move_s(call, point_);
    if (reaches_limit(more_s))
      return false;
    seconds_[depth] = option_s + first_fits_.move_s(call, point_);
    return !reaches_limit(more_s);
  }

  /// Chooses the later calls. Returns false if slower options of this call
  /// cannot lead to an entry either: the later ones did not fit or were too
  /// slow, and do not depend on this one, which shares no device with them.
  bool choose_later(std::size_t depth, double more_s) {
    const bool is_last = depth + 1 == calls_.size();
    const auto given_s = is_last ? more_s : more_();
    const auto before = tried_;
    if (entry_.seconds + given_s < limit_())
      choose(depth + 1, given_s);
    else
      ++tried_; // with another option, other levels may take less
    return tried_ > before || given_s > 0 || first_fits_.is_moved(calls_[depth])
           || !is_apart_from_later(depth);
  }

  bool is_apart_from_later(std::size_t depth) const {
    const auto& at = *positions_;
    const auto end
      = [&](std::size_t i) { return at[i] + shape_.groups[i]->num_devices; };
    for (auto i = depth + 1; i < at.size(); ++i)
      if (at[i] < end(depth) && at[depth] < end(i))
        return false;
    return true;
  }

  const ExactInstance& instance_;
  LevelShapes& shapes_;
  const std::vector<std::uint32_t>& calls_;
  FirstFits& first_fits_;
  NodeCount& nodes_;
  SpacePoint& point_;
  Limit limit_;
  More more_;
  Visit visit_;
  LevelShape shape_;
  const std::vector<std::uint32_t>* positions_ = nullptr;
  std::array<std::uint32_t, 3> first_ = {};
  std::array<double, 3> seconds_ = {};
  LevelEntry entry_;
  std::uint64_t tried_ = 0; ///< entries, and choices that `more` ruled out
};

} // namespace troupe::plans::internal
