#include "plans/search.hpp"

#include "config/error.hpp"
#include "plans/call_layers.hpp"
#include "plans/exact_search.hpp"
#include "plans/local_search.hpp"
#include "plans/nearest.hpp"
#include "plans/presets.hpp"
#include "plans/simulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>

namespace troupe::plans {

namespace {

/// Nodes of branch and bound, positions included: some ten seconds of one core.
/// A search that ends here says that it is not proved.
constexpr std::uint64_t exact_node_limit = 5'000'000;
constexpr std::size_t next_best = 3;
constexpr double gib = 1024.0 * 1024 * 1024;

class Search {
public:
  Search(const PlanProblem& problem, const CostModel& costs,
         const SearchOptions& options)
    : problem_(problem),
      costs_(costs),
      options_(options),
      space_(problem, costs,
             {.chunks = options.chunks, .only_what_runs = problem.for_run}),
      cost_(space_, options.lag),
      layers_(call_layers(problem.workflow)) {
    layered_ = options.lag.empty() && has_barriers(problem.workflow)
               && std::ranges::all_of(layers_, [](const auto& layer) {
                    return !layer.empty() && layer.size() <= 3;
                  });
  }

  SearchResult run() {
    const auto begin = std::chrono::steady_clock::now();
    result_.counts = space_.counts();
    note("{} options of {} calls; left out {} illegal, {} too large for a "
         "device, {} beaten in everything",
         result_.counts.kept, space_.calls().size(), result_.counts.illegal,
         result_.counts.memory, result_.counts.dominated);
    refuse_if_nothing_fits();
    try_presets();
    choose_method();
    if (uses_exact_)
      run_exact();
    run_walks();
    take_points();
    result_.lower_bound_s
      = std::max(bound_of_space(), proved_bound_of_layers());
    result_.evaluations = cost_.evaluations();
    result_.interrupted = stopped();
    finish();
    result_.seconds
      = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
    return std::move(result_);
  }

private:
  template <class... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    result_.history.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  bool stopped() const {
    return options_.stop && options_.stop->load();
  }
  double best_s() const {
    return found_.empty() ? std::numeric_limits<double>::infinity()
                          : found_.front().step_s;
  }

  /// In one line: which call, how much, of how much.
  [[noreturn]] void refuse(const std::string& where, std::uint64_t bytes) {
    const auto devices = problem_.cluster.num_devices();
    throw PlanError(fmt::format(
      "no plan fits: the smallest peak is {:.1f} GiB of {:.1f} on device 0 in "
      "{}; try offload, a smaller batch or {} devices",
      static_cast<double>(bytes) / gib,
      static_cast<double>(problem_.device_memory_bytes()) / gib, where,
      2 * devices));
  }

  void refuse_if_nothing_fits() {
    const SearchSpace::SpaceCall* worst = nullptr;
    for (const auto& call : space_.calls())
      if (call.options.empty()
          && (!worst || call.smallest_bytes > worst->smallest_bytes))
        worst = &call;
    if (worst && worst->smallest_bytes == ~std::uint64_t{0})
      throw PlanError(fmt::format(
        "no plan fits: {} has fewer samples than devices in every strategy; "
        "try a larger data.batch_size",
        worst->call->name));
    if (worst)
      refuse(worst->call->name, worst->smallest_bytes);
  }

  void add_found(FoundPlan found) {
    const auto same = std::ranges::find(found_, found.plan, &FoundPlan::plan);
    if (same != found_.end())
      return;
    const auto at
      = std::ranges::upper_bound(found_, found.step_s, {}, &FoundPlan::step_s);
    found_.insert(at, std::move(found));
  }

  void try_presets() {
    for (const auto& name : preset_names()) {
      try {
        auto plan = fitted_preset(name, problem_);
        const bool allowed = plan.lag.empty() || plan.lag == options_.lag;
        if (!allowed || !check_plan(problem_, plan).ok())
          continue;
        const auto step_s = simulate_step_s(problem_, costs_, plan);
        add_found({step_s, "preset " + name, std::move(plan)});
      } catch (const PlanError&) {
        continue; // this cluster does not fit it, which `compare` shows
      }
    }
    if (!found_.empty())
      note("{}: {:.4g} s is the best of {} presets that fit",
           found_.front().origin, found_.front().step_s, found_.size());
  }

  void choose_method() {
    const auto asked = options_.method;
    if (asked == SearchMethod::exact && !layered_)
      throw PlanError("search: exact needs a step of layers with barriers and "
                      "at most three calls each, without lag; try --method "
                      "descent");
    uses_exact_
      = layered_
        && (asked == SearchMethod::exact || asked == SearchMethod::automatic);
    result_.method = asked == SearchMethod::automatic
                       ? (uses_exact_ ? "exact" : "descent")
                       : std::string(to_string(asked));
  }

  /// Whole calls only: chunks break the barriers.
  ExactInstance make_instance() {
    ExactInstance instance{.num_devices = space_.num_devices(),
                           .layers = layers_};
    for (const auto& call : space_.calls()) {
      ExactCall exact{.home = call.home, .trains = call.trains};
      std::vector<std::uint32_t> numbers;
      for (std::uint32_t i = 0; i < call.options.size(); ++i)
        if (call.options[i].chunks == 1) {
          exact.options.push_back(
            {call.options[i].num_devices, call.options[i].seconds});
          numbers.push_back(i);
        }
      instance.calls.push_back(std::move(exact));
      option_numbers_.push_back(std::move(numbers));
    }
    instance.align = [this](std::uint32_t from, std::uint32_t count) {
      return space_.align(from, count);
    };
    instance.fits = [this](const SpacePoint& point) {
      return (options_.chunks ? peak_bytes(space_, in_space(point))
                              : peak_bytes(space_, point))
             <= space_.memory_bytes();
    };
    instance.move_s = [this](std::uint32_t i, const SpacePoint& point) {
      SpacePoint whole;
      const auto& at = options_.chunks ? whole = in_space(point) : point;
      const auto k = static_cast<std::size_t>(space_.calls()[i].home);
      return space_.move_s(i, at.options[i], at.positions[i], at.options[k],
                           at.positions[k]);
    };
    return instance;
  }

  /// From numbers of whole options to numbers of all options.
  SpacePoint in_space(SpacePoint point) const {
    if (!options_.chunks)
      return point; // all options are whole
    for (std::size_t i = 0; i < point.options.size(); ++i)
      if (point.options[i] != not_chosen)
        point.options[i] = option_numbers_[i][point.options[i]];
    return point;
  }

  void run_exact() {
    const auto instance = make_instance();
    const auto known_s
      = found_.empty() ? 0.0 : found_.front().step_s * (1 + 1e-9);
    const auto exact
      = exact_search(instance, known_s, options_.stop, exact_node_limit);
    result_.nodes = exact.nodes;
    exact_s_ = exact.found ? exact.seconds : best_s();
    result_.proved = exact.proved;
    layer_bound_s_ = exact.lower_bound_s;
    if (exact.found) {
      start_ = in_space(exact.point);
      note("exact: {:.4g} s, {} in {} nodes", exact.seconds,
           exact.proved ? "proved" : "not closed", exact.nodes);
    } else if (exact.proved) {
      note("exact: no plan of whole calls beats the best preset, proved in {} "
           "nodes",
           exact.nodes);
    }
  }

  std::uint64_t walk_evaluations() const {
    if (options_.iterations > 0)
      return options_.iterations;
    if (!uses_exact_)
      return 20'000;
    return space_.num_devices() <= 16 ? 600 : 3000;
  }

  void run_walks() {
    Walk walk(space_, cost_,
              {.evaluations = walk_evaluations(),
               .seconds = options_.seconds,
               .stop = options_.stop},
              options_.seed);
    if (!start_ && !found_start(walk))
      return;
    cost_.step_s(*start_);
    if (!options_.polish)
      return;
    if (options_.method == SearchMethod::mcmc) {
      walk.anneal();
    } else {
      auto point = *start_;
      const auto polished_s = walk.descend(point);
      note("polishing with the simulator: {:.4g} s", polished_s);
      if (!uses_exact_)
        walk.restart();
    }
    if (!cost_.best().empty())
      note("{}: {:.4g} s after {} simulations", result_.method,
           cost_.best().front().step_s, cost_.evaluations());
  }

  bool found_start(Walk& walk) {
    SpacePoint point;
    if (!walk.find_start(point)) {
      if (found_.empty())
        refuse("all calls together", peak_bytes(space_, point));
      return false;
    }
    start_ = point;
    return true;
  }

  /// Points become plans; what the full check refuses is left out.
  void take_points() {
    for (const auto& scored : cost_.best()) {
      auto plan = plan_at(space_, scored.point, options_.lag);
      if (!check_plan(problem_, plan).ok())
        continue;
      const auto step_s = simulate_step_s(problem_, costs_, plan);
      add_found({step_s, result_.method, std::move(plan)});
    }
  }

  /// Seconds below which no plan of this space can be: the critical path with
  /// every call at its fastest, and all device-seconds shared out evenly.
  double bound_of_space() const {
    const auto& workflow = problem_.workflow;
    std::vector<double> path(workflow.calls.size(), 0);
    double work = 0, longest = 0;
    std::size_t number = 0;
    for (std::size_t i = 0; i < workflow.calls.size(); ++i) {
      for (const auto producer : producers(workflow, i))
        path[i] = std::max(path[i], path[producer]);
      if (workflow.calls[i].kind == CallKind::function)
        continue;
      auto fastest = std::numeric_limits<double>::infinity();
      auto least_work = fastest;
      const auto& call = space_.calls()[number++];
      for (const auto& option : call.options) {
        const bool waits = call.call->kind != CallKind::inference;
        fastest = std::min(fastest, waits ? option.total_s() : option.seconds);
        least_work
          = std::min(least_work, option.total_s() * option.num_devices);
      }
      path[i] += fastest;
      work += least_work;
      longest = std::max(longest, path[i]);
    }
    std::uint32_t lag = 0;
    for (const auto& [name, steps] : options_.lag)
      lag = std::max(lag, steps);
    return std::max(longest / (1 + lag), work / space_.num_devices());
  }

  /// The bound of layers holds where no call may be cut.
  double proved_bound_of_layers() const {
    return options_.chunks ? 0.0 : layer_bound_s_;
  }

  void finish() {
    TROUPE_CHECK(!found_.empty(), "a search without a plan");
    result_.best = found_.front();
    // The proof counts a move with the call that needs it; the schedule moves
    // earlier, which may hold others up. Then the answer is not the optimum.
    if (result_.proved && best_s() > exact_s_ * (1 + 1e-6)) {
      result_.proved = false;
      note("not proved: {:.4g} s were counted, moves in the schedule take more",
           exact_s_);
    }
    for (std::size_t i = 1; i < found_.size() && i <= next_best; ++i)
      result_.next.push_back(found_[i]);
    if (options_.chunks && layer_bound_s_ > 0)
      note("lower bound without chunks: {:.4g} s, gap {:.1f} %", layer_bound_s_,
           100 * std::max(0.0, best_s() / layer_bound_s_ - 1));
  }

  const PlanProblem& problem_;
  const CostModel& costs_;
  const SearchOptions& options_;
  SearchSpace space_;
  PointCost cost_;
  std::vector<std::vector<std::uint32_t>> layers_;
  bool layered_ = false;
  bool uses_exact_ = false;
  double layer_bound_s_ = 0;
  double exact_s_ = 0; ///< of branch and bound's plan
  std::vector<std::vector<std::uint32_t>> option_numbers_;
  std::optional<SpacePoint> start_;
  std::vector<FoundPlan> found_; ///< fastest first
  SearchResult result_;
};

} // namespace

std::string_view to_string(SearchMethod method) {
  switch (method) {
  case SearchMethod::automatic:
    return "auto";
  case SearchMethod::exact:
    return "exact";
  case SearchMethod::mcmc:
    return "mcmc";
  case SearchMethod::descent:
    return "descent";
  }
  return "?";
}

SearchMethod parse_search_method(const std::string& name) {
  std::vector<std::string> names;
  for (const auto method : {SearchMethod::automatic, SearchMethod::exact,
                            SearchMethod::mcmc, SearchMethod::descent}) {
    if (name == to_string(method))
      return method;
    names.emplace_back(to_string(method));
  }
  throw ConfigError({"command line", 0},
                    fmt::format("--method: expected auto, exact, mcmc or "
                                "descent, got '{}'{}",
                                name, nearest_hint(name, names)));
}

double SearchResult::gap() const {
  return lower_bound_s > 0 ? std::max(0.0, best.step_s / lower_bound_s - 1)
                           : 0.0;
}

SearchResult search_plan(const PlanProblem& problem, const CostModel& costs,
                         const SearchOptions& options) {
  return Search(problem, costs, options).run();
}

std::string summary(const SearchResult& result) {
  return fmt::format("best {:.4g} s, lower bound {:.4g} s, gap {:.1f} %{}",
                     result.best.step_s, result.lower_bound_s,
                     100 * result.gap(), result.proved ? ", proved" : "");
}

} // namespace troupe::plans
