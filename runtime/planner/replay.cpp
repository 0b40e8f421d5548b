#include "runtime/planner/replay.hpp"

#include "config/base/error.hpp"
#include "plans/simulate/fit_measured.hpp"
#include "plans/simulate/simulator.hpp"
#include "runtime/planner/phase_names.hpp"
#include "runtime/planner/progress_line.hpp"
#include "runtime/planner/recorded_steps.hpp"
#include "runtime/planner/user_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

/// Steps that are simulated of a long run.
constexpr std::size_t most_steps = 200;

ConfigError no_run(const std::string& folder, const std::string& got) {
  return ConfigError({.place = {"command line", 0},
                      .path = "RUN",
                      .expected = "the folder of a run with steps, that has "
                                  "config.yaml, plan.yaml and metrics.jsonl",
                      .got = got,
                      .hint = "troupe status lists the runs; '" + folder
                              + "' is looked up from here"});
}

/// Returns the steps of a run, without the first one if there are others: it
/// warms up.
std::vector<RecordedStep> steps_of(const std::string& folder) {
  for (const auto* file : {"config.yaml", "plan.yaml", "metrics.jsonl"})
    if (!fs::is_regular_file(fs::path(folder) / file))
      throw no_run(folder, fmt::format("no {} in '{}'", file, folder));
  auto steps = read_recorded_steps(fs::path(folder) / "metrics.jsonl");
  if (steps.empty())
    throw no_run(folder, fmt::format("no step in '{}'", folder));
  if (steps.size() > 1)
    steps.erase(steps.begin());
  return steps;
}

/// Returns the arguments of the run as it was.
PlanArguments own_arguments(const ReplayArguments& arguments) {
  PlanArguments own = arguments;
  own.config.arguments.insert(own.config.arguments.begin(), arguments.run);
  own.plan_file = (fs::path(arguments.run) / "plan.yaml").string();
  return own;
}

/// Returns the arguments of a run under the other plan.
PlanArguments other_arguments(const ReplayArguments& arguments) {
  auto other = own_arguments(arguments);
  auto& words = other.config.arguments;
  if (!arguments.other.empty() || arguments.nodes > 0) {
    other.plan_file.clear();
    words.push_back("plan="
                    + (arguments.other.empty() ? "auto" : arguments.other));
  }
  if (arguments.nodes > 0) {
    words.push_back(fmt::format("cluster.nodes={}", arguments.nodes));
    words.emplace_back("cluster.hosts=[]");
  }
  return other;
}

/// Throws ConfigError for a --lag that the settings of the run do not allow.
void check_lag(const Settings& settings, int lag) {
  if (lag >= 0 && lags_too_far(settings, static_cast<std::uint32_t>(lag)))
    throw ConfigError({.place = {"command line", 0},
                       .path = "--lag",
                       .expected = allowed_lag_text(settings),
                       .got = std::to_string(lag),
                       .hint = fmt::format("--lag {}", max_lag_of(settings))});
}

class Replayer {
public:
  explicit Replayer(const ReplayArguments& arguments)
    : arguments_(arguments),
      progress_(arguments),
      recorded_(steps_of(arguments.run)),
      own_(own_arguments(arguments)),
      settings_(own_.settings()),
      problem_(make_problem(settings_, own_)) {
    check_lag(settings_, arguments_.lag);
    for (const auto& call : problem_.workflow.calls)
      calls_of_[phase_of(problem_.workflow, call.name)].push_back(call.name);
  }

  ReplayReport replay() {
    report_.run = settings_.run.name;
    report_.workflow = settings_.workflow;
    report_.steps_of_run = static_cast<std::uint32_t>(recorded_.size());
    report_.hardware = problem_.hardware;
    const auto own = named_plan(settings_, problem_);
    report_.own = {settings_of_run().plan, own->plan};
    const auto middle = middle_step();
    choose_other(middle);
    replay_steps();
    report_phases(middle);
    report_idle();
    progress_.erase();
    return std::move(report_);
  }

private:
  /// Returns the settings with the name of the plan that the run had.
  Settings settings_of_run() const {
    auto as_it_was = own_;
    as_it_was.plan_file.clear();
    return as_it_was.settings();
  }

  const RecordedStep& middle_step() const {
    std::vector<double> seconds;
    for (const auto& step : recorded_)
      seconds.push_back(step.value("timing_s/step"));
    const auto middle_s = median_of(seconds);
    return *std::ranges::find_if(recorded_, [&](const auto& step) {
      return step.value("timing_s/step") == middle_s;
    });
  }

  /// Returns the lengths of a step's samples; those of the settings if its
  /// metrics have none.
  plans::Lengths lengths_of(const RecordedStep& step) const {
    const auto prompt = step.value("prompt_length/mean");
    const auto mean = step.value("response_length/mean");
    if (mean > 0)
      return {prompt, mean, step.value("response_length/max")};
    const auto samples = double(problem_.sizes.samples_per_step);
    const auto tokens = step.value("perf/total_num_tokens") / samples;
    return tokens >= 1 ? plans::Lengths(0, tokens, tokens) : problem_.lengths;
  }

  plans::MeasuredCosts costs_of(const RecordedStep& step) const {
    std::vector<plans::MeasuredPhase> phases;
    for (const auto& [name, calls] : calls_of_)
      phases.push_back({.calls = calls, .seconds = step.value(name)});
    auto problem = problem_;
    problem.lengths = lengths_of(step);
    return plans::fit_measured(std::move(problem), report_.own.plan, phases,
                               step.value(move_phase));
  }

  /// Returns a problem with the lengths and costs of a step.
  static plans::PlanProblem with_costs(plans::PlanProblem problem,
                                       const plans::Lengths& lengths,
                                       const plans::MeasuredCosts& costs) {
    problem.lengths = lengths;
    problem.measured = costs;
    return problem;
  }

  static double step_s(const plans::PlanProblem& problem,
                       const plans::ExecutionPlan& plan) {
    return plans::simulate_step_s(problem, plans::CostModel(problem), plan);
  }

  void choose_other(const RecordedStep& middle) {
    auto arguments = other_arguments(arguments_);
    if (arguments_.lag < 0 && !arguments.plan_file.empty()) {
      arguments.plan_file.clear(); // nothing is named: the best of all
      arguments.config.arguments.emplace_back("plan=auto");
    }
    const auto settings = arguments.settings();
    arguments.quiet = true; // notes were printed for the run's own plan
    other_problem_ = make_problem(settings, arguments);
    const auto problem
      = with_costs(other_problem_, lengths_of(middle), costs_of(middle));
    if (settings.plan == "auto")
      progress_.show("searching a plan with the costs of the run");
    auto named = plan_or_search(settings, problem, arguments);
    if (settings.plan == "auto")
      named.name = "best found";
    else if (named.plan == report_.own.plan)
      named.name = "own plan";
    set_lag(named);
    plans::require_ok(plans::check_plan(problem, named.plan),
                      places_of_plan(settings, named.name));
    report_.other = {named.name, named.plan, settings.plan == "auto"};
  }

  void set_lag(NamedPlan& named) const {
    if (arguments_.lag < 0)
      return;
    const auto lag = static_cast<std::uint32_t>(arguments_.lag);
    for (const auto& call : problem_.workflow.calls)
      if (call.kind == plans::CallKind::generate)
        named.plan.lag[call.name] = lag;
    if (lag == 0)
      named.plan.lag.clear();
    named.name += fmt::format(", lag {}", lag);
  }

  void replay_steps() {
    const auto count = std::min(most_steps, recorded_.size());
    for (std::size_t i = 0; i < count; ++i) {
      progress_.show(fmt::format("step {} of {}", i + 1, count));
      replay_step(recorded_[i * recorded_.size() / count]);
    }
  }

  void replay_step(const RecordedStep& step) {
    const auto lengths = lengths_of(step);
    const auto costs = costs_of(step);
    report_.steps.push_back(
      {.step = static_cast<std::uint32_t>(step.value("step")),
       .measured_s = step.value("timing_s/step"),
       .predicted_s
       = step_s(with_costs(problem_, lengths, {}), report_.own.plan),
       .fitted_s
       = step_s(with_costs(problem_, lengths, costs), report_.own.plan),
       .other_s = step_s(with_costs(other_problem_, lengths, costs),
                         report_.other.plan)});
  }

  void report_phases(const RecordedStep& middle) {
    const auto lengths = lengths_of(middle);
    const auto predicted = plans::simulated_seconds(
      with_costs(problem_, lengths, {}), report_.own.plan);
    const auto other = plans::simulated_seconds(
      with_costs(other_problem_, lengths, costs_of(middle)),
      report_.other.plan);
    const auto sum = [](const plans::SimulatedSeconds& seconds,
                        const std::vector<std::string>& calls) {
      double all = 0;
      for (const auto& call : calls)
        if (const auto found = seconds.calls.find(call);
            found != seconds.calls.end())
          all += found->second;
      return all;
    };
    for (const auto& [name, calls] : calls_of_)
      report_.phases.push_back(
        {.name = name.substr(std::string("timing_s/").size()),
         .measured_s = middle.value(name),
         .predicted_s = sum(predicted, calls),
         .other_s = sum(other, calls)});
    report_.phases.push_back({.name = "move",
                              .measured_s = middle.value(move_phase),
                              .predicted_s = predicted.moves,
                              .other_s = other.moves});
    std::ranges::stable_sort(report_.phases, std::ranges::greater{},
                             &ReplayedPhase::measured_s);
  }

  /// Sums what devices waited for, as every step's metrics have it.
  void report_idle() {
    struct Reason {
      const char* metric;
      plans::IdleReason said;
    };
    std::array reasons{
      Reason{"perf/idle/dependency", plans::dependency_reason()},
      Reason{"perf/idle/version", plans::version_reason()},
      Reason{"perf/idle/device", plans::device_reason()},
      Reason{"perf/idle/bytes",
             {.what = "bytes of rows on their way",
              .remedy = "calls on the devices that have the rows"}}};
    for (auto& [metric, said] : reasons) {
      for (const auto& step : recorded_)
        said.seconds += step.value(metric) * step.value("timing_s/step")
                        / double(recorded_.size());
      if (said.seconds > 0)
        report_.idle.push_back(said);
    }
    std::ranges::sort(report_.idle, std::ranges::greater{},
                      &plans::IdleReason::seconds);
  }

  const ReplayArguments& arguments_;
  ProgressLine progress_;
  std::vector<RecordedStep> recorded_;
  PlanArguments own_;
  Settings settings_;
  plans::PlanProblem problem_;
  plans::PlanProblem other_problem_ = {};
  std::map<std::string, std::vector<std::string>> calls_of_; ///< by phase
  ReplayReport report_;
};

} // namespace

ReplayReport replay(const ReplayArguments& arguments) {
  return Replayer(arguments).replay();
}

} // namespace troupe::runtime
