#include "plans/search/search.hpp"

#include "config/base/clock.hpp"
#include "config/base/error.hpp"
#include "plans/search/exact_search.hpp"
#include "plans/search/infeasible.hpp"
#include "plans/search/kind_walk.hpp"
#include "plans/search/kinds_alone.hpp"
#include "plans/search/local_search.hpp"
#include "plans/search/lower_bound.hpp"
#include "plans/search/preset_starts.hpp"
#include "plans/search/shared_moves.hpp"
#include "plans/simulate/simulator.hpp"
#include "plans/workflow/call_levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

namespace troupe::plans {

using internal::add_found;

namespace {

/// Node limit of branch and bound, positions included: about ten seconds of one
/// core. A search that ends here reports that it is not proved.
constexpr std::uint64_t exact_node_limit = 5'000'000;
/// Limit on the moves that it may compute, times the devices of the cluster:
/// about five seconds. PPO on 4,096 devices takes half of it.
constexpr std::uint64_t exact_move_limit = 40'000'000;
/// Simulations of the walk before branch and bound.
constexpr std::uint64_t first_evaluations = 1500;
/// Evaluation limit of the chunking walk that follows.
constexpr std::uint64_t chunk_evaluations = 1500;
constexpr int chunk_counts[] = {2, 4};
/// Least gain of chunks, as a share of a step: less is not worth giving up a
/// plan with a proof.
constexpr double least_chunk_gain = 1e-3;
constexpr std::size_t next_best = 3;

bool has_chunks(const ExecutionPlan& plan) {
  return std::ranges::any_of(
    plan.calls, [](const auto& call) { return call.second.chunks > 1; });
}

bool has_whole_options(const SearchSpace::SpaceCall& call) {
  return std::ranges::any_of(
    call.options, [](const auto& option) { return option.chunks == 1; });
}

SpaceLimits limits_of(const SearchOptions& options,
                      const std::vector<FoundPlan>& starts) {
  SpaceLimits limits{.chunks = options.chunks != ChunkSearch::presets};
  for (const auto& found : starts)
    limits.also.push_back(found.plan);
  return limits;
}

/// Returns the plans than which a search may not be worse, fastest first.
std::vector<FoundPlan> starts_of(const PlanProblem& problem,
                                 const CostModel& costs,
                                 const SearchOptions& options) {
  auto starts = internal::presets_that_fit(problem, costs, options);
  for (auto& plan : internal::plans_on_one_kind(problem, costs, options))
    add_found(starts, std::move(plan));
  return starts;
}

class Search {
public:
  Search(const PlanProblem& problem, const CostModel& costs,
         const SearchOptions& options)
    : problem_(problem),
      costs_(costs),
      options_(options),
      found_(starts_of(problem, costs, options)),
      space_(problem, costs, limits_of(options, found_)),
      cost_(space_, options.lag),
      levels_(call_levels(problem.workflow)) {
    leveled_ = !space_.is_mixed() && options.lag.empty()
               && has_barriers(problem.workflow)
               && std::ranges::all_of(space_.calls(), has_whole_options)
               && std::ranges::all_of(levels_, [](const auto& level) {
                    return !level.empty() && level.size() <= 3;
                  });
  }

  SearchResult run() {
    result_.counts = space_.counts();
    note("{} options of {} calls; left out {} illegal, {} too large for a "
         "device, {} beaten in everything",
         result_.counts.kept, space_.calls().size(), result_.counts.illegal,
         result_.counts.memory, result_.counts.dominated);
    if (const auto why = why_a_call_does_not_fit(space_))
      throw PlanError(*why);
    if (!found_.empty())
      note("{}: {:.4g} s is the best of {} presets that fit{}",
           found_.front().origin, found_.front().step_s, found_.size(),
           space_.is_mixed() ? " and plans on one kind of nodes" : "");
    choose_method();
    if (uses_exact_) {
      walk_first();
      run_exact();
    }
    run_walks();
    take_points();
    if (options_.chunks == ChunkSearch::afterwards)
      walk_chunks();
    result_.evaluations = cost_.evaluations();
    if (stopped())
      result_.end = SearchEnd::interrupted;
    finish();
    result_.seconds = watch_.seconds();
    return std::move(result_);
  }

private:
  template <class... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    result_.history.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  bool everywhere() const {
    return options_.chunks == ChunkSearch::everywhere;
  }
  bool stopped() const {
    return options_.stop && options_.stop->load();
  }

  void choose_method() {
    const auto asked = options_.method;
    if (asked == SearchMethod::exact && !leveled_)
      throw PlanError("search: exact needs a step of levels with barriers and "
                      "at most three calls each, without lag; try --method "
                      "descent");
    uses_exact_
      = leveled_
        && (asked == SearchMethod::exact || asked == SearchMethod::automatic);
    result_.method = asked == SearchMethod::automatic
                       ? (uses_exact_ ? "exact" : "descent")
                       : std::string(to_string(asked));
  }

  /// Adds the options without chunks, which would break the barriers. Planes
  /// that change in the last level return to host memory before the step ends.
  void add_exact_call(std::uint32_t number, ExactInstance& instance) {
    const auto& call = space_.calls()[number];
    const bool goes
      = call.trains && std::ranges::count(levels_.back(), number) > 0;
    const auto seconds = [&](std::uint32_t i) {
      return call.options[i].seconds + (goes ? call.options[i].offload_s() : 0);
    };
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < call.options.size(); ++i)
      if (call.options[i].chunks == 1)
        numbers.push_back(i);
    std::ranges::stable_sort(numbers, {}, seconds);
    instance.calls.push_back({.home = call.home, .trains = call.trains});
    for (const auto i : numbers)
      instance.calls.back().options.push_back(
        {.num_devices = call.options[i].num_devices,
         .seconds = seconds(i),
         .cores = call.options[i].cores,
         .comes_s = call.options[i].offload_s()});
    option_numbers_.push_back(std::move(numbers));
  }

  ExactInstance make_instance() {
    ExactInstance instance{.num_devices = space_.num_devices(),
                           .levels = levels_};
    for (std::uint32_t i = 0; i < space_.calls().size(); ++i)
      add_exact_call(i, instance);
    if (space_.num_cores() < space_.num_devices())
      instance.num_cores = space_.num_cores();
    instance.align = [this](std::uint32_t from, std::uint32_t count) {
      return space_.align(from, count);
    };
    instance.fits = [this](const SpacePoint& point) {
      enough_ = enough_ || stopped()
                || space_.moves_worked_out() * space_.num_devices()
                     > exact_move_limit;
      return peak_bytes(space_, in_space(point)) <= space_.memory_bytes();
    };
    instance.move_s = [this](std::uint32_t call, const SpacePoint& point) {
      return internal::own_move_s(space_, call, in_space(point));
    };
    instance.least_move_s
      = [this](std::uint32_t call, const SpacePoint& point) {
          return internal::least_own_move_s(space_, call, in_space(point));
        };
    instance.step_s = [this](const SpacePoint& point) {
      return cost_.step_s(in_space(point));
    };
    return instance;
  }

  /// Converts indices of whole-call options to indices of all options.
  const SpacePoint& in_space(const SpacePoint& point) {
    scratch_ = point;
    for (std::size_t i = 0; i < point.options.size(); ++i)
      if (point.options[i] != not_chosen)
        scratch_.options[i] = option_numbers_[i][point.options[i]];
    return scratch_;
  }

  /// Finds a good plan for branch and bound to beat.
  void walk_first() {
    Walk walk(space_, cost_,
              {.evaluations = first_evaluations,
               .stop = options_.stop,
               .whole_calls = !everywhere()},
              options_.seed);
    SpacePoint point;
    if (!walk.find_start(point))
      return;
    walk.descend(point);
    walk.restart();
  }

  double known_s() const {
    auto best = std::numeric_limits<double>::infinity();
    if (!found_.empty())
      best = found_.front().step_s;
    if (!cost_.best().empty())
      best = std::min(best, cost_.best().front().step_s);
    return best;
  }

  void run_exact() {
    const auto instance = make_instance();
    const auto known = known_s();
    enough_ = stopped();
    const auto exact
      = exact_search(instance, std::isfinite(known) ? known * (1 + 1e-9) : 0.0,
                     &enough_, exact_node_limit);
    result_.packed_only = space_.num_devices() > exact_all_positions;
    result_.nodes = exact.nodes;
    result_.proved = exact.proved;
    level_bound_s_ = exact.lower_bound_s;
    if (exact.found) {
      note("exact: {:.4g} s, {}{} in {} nodes and {} simulations",
           exact.seconds, exact.proved ? "proved" : "not closed",
           exact.proved && result_.packed_only ? " of packed meshes" : "",
           exact.nodes, exact.leaves);
    } else if (exact.proved) {
      note("exact: no plan of whole calls{} is faster than {:.4g} s, proved in "
           "{} nodes",
           result_.packed_only ? " on packed meshes" : "", known, exact.nodes);
    }
  }

  std::uint64_t walk_evaluations() const {
    if (options_.iterations > 0)
      return options_.iterations;
    if (!uses_exact_)
      return 20'000;
    return result_.proved ? 3000 : 150'000; // a descent ends by itself
  }

  /// Returns whether polishing is done: on up to 8 devices branch and bound has
  /// tried every position.
  bool is_polished() const {
    return !options_.polish
           || (result_.proved && !everywhere() && !result_.packed_only);
  }

  void run_walks() {
    Walk walk(space_, cost_,
              {.evaluations = walk_evaluations(),
               .seconds = options_.seconds,
               .stop = options_.stop,
               .whole_calls = !everywhere()},
              options_.seed);
    if (space_.is_mixed())
      simulate_plans(found_, space_, cost_, walk);
    if (!cost_.best().empty())
      start_ = cost_.best().front().point;
    if ((!start_ && !find_start(walk)) || is_polished())
      return;
    cost_.step_s(*start_);
    if (options_.method == SearchMethod::mcmc) {
      walk.anneal();
    } else {
      if (space_.is_mixed())
        walk_from_kinds(space_, cost_, walk);
      auto point = space_.is_mixed() ? cost_.best().front().point : *start_;
      const auto polished_s = walk.descend(point);
      note("polishing with the simulator: {:.4g} s", polished_s);
      if (!uses_exact_)
        walk.restart();
    }
    if (!cost_.best().empty())
      note("{}: {:.4g} s after {} simulations", result_.method,
           cost_.best().front().step_s, cost_.evaluations());
  }

  /// Searches plans with chunks, which pay off where their readers run in
  /// parallel with their writers: from the best plans of whole calls, then from
  /// random ones.
  void walk_chunks() {
    if (cost_.best().empty() || !options_.polish)
      return;
    const auto whole_s = known_s();
    Walk walk(space_, cost_,
              {.evaluations = chunk_evaluations, .stop = options_.stop},
              options_.seed);
    const auto starts = cost_.best();
    for (const auto& start : starts)
      for (const auto count : chunk_counts) {
        auto point = start.point;
        if (cut_into_chunks(space_, point, count))
          cost_.step_s(point);
      }
    auto point = cost_.best().front().point;
    walk.descend(point);
    walk.restart();
    if (known_s() > whole_s * (1 - least_chunk_gain))
      return;
    note("chunks: {:.4g} s in place of {:.4g} s", known_s(), whole_s);
    take_points();
  }

  bool find_start(Walk& walk) {
    SpacePoint point;
    if (!walk.find_start(point)) {
      if (found_.empty())
        throw PlanError(why_calls_do_not_fit(space_, point));
      return false;
    }
    start_ = point;
    return true;
  }

  /// Turns points into plans; those that the full check rejects are left out.
  void take_points() {
    for (const auto& scored : cost_.best()) {
      auto plan = plan_at(space_, scored.point, options_.lag);
      if (!check_plan(problem_, plan).ok())
        continue;
      add_found(found_, {simulate_step_s(problem_, costs_, plan),
                         result_.method, plan});
    }
  }

  /// Fills in bound and proof. Both hold for whole calls; a preset with chunks
  /// may be faster than all of these.
  void finish() {
    if (found_.empty()) // one plan's mistake is every plan's
      require_ok(check_plan(problem_, plan_at(space_, *start_, options_.lag)));
    TROUPE_CHECK(!found_.empty(), "a search without a plan");
    result_.best = found_.front();
    std::uint32_t lag = 0;
    for (const auto& [name, steps] : options_.lag)
      lag = std::max(lag, steps);
    result_.lower_bound_s = least_step_s(space_, lag);
    const bool whole = !everywhere() && !has_chunks(result_.best.plan);
    if (whole)
      result_.lower_bound_s = std::max(result_.lower_bound_s, level_bound_s_);
    else if (level_bound_s_ > 0)
      note("lower bound without chunks: {:.4g} s", level_bound_s_);
    result_.proved = result_.proved && whole;
    for (std::size_t i = 1; i < found_.size() && i <= next_best; ++i)
      result_.next.push_back(found_[i]);
  }

  /// Includes the time for presets and for building the space.
  Stopwatch watch_;
  const PlanProblem& problem_;
  const CostModel& costs_;
  const SearchOptions& options_;
  std::vector<FoundPlan> found_; ///< fastest first
  SearchSpace space_;
  PointCost cost_;
  std::vector<std::vector<std::uint32_t>> levels_;
  bool leveled_ = false;
  bool uses_exact_ = false;
  double level_bound_s_ = 0;
  std::vector<std::vector<std::uint32_t>> option_numbers_;
  SpacePoint scratch_;
  std::optional<SpacePoint> start_;
  std::atomic<bool> enough_ = false; ///< ends branch and bound
  SearchResult result_;
};

} // namespace

SearchResult search_plan(const PlanProblem& problem, const CostModel& costs,
                         const SearchOptions& options) {
  if (problem.hardware.is_mixed() && options.method == SearchMethod::exact)
    throw PlanError("search: exact takes nodes as alike, and these differ; "
                    "try --method descent");
  return Search(problem, costs, options).run();
}

} // namespace troupe::plans
