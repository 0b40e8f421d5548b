#include "runtime/planner/adviser.hpp"

#include "config/base/error.hpp"
#include "config/yaml/yaml_tree.hpp"
#include "plans/cost/cluster_file.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/planner/best_plan.hpp"
#include "runtime/planner/progress_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

namespace troupe::runtime {

namespace {

/// A cluster of so many devices: whole nodes of the hardware.
plans::Cluster cluster_of_devices(std::uint32_t devices,
                                  const plans::Hardware& hardware) {
  const auto node = std::min(devices, hardware.devices_per_node);
  if (node == 0 || devices % node != 0)
    throw ConfigError(
      {.place = {"command line", 0},
       .path = "--gpus",
       .expected = fmt::format("whole nodes of {} devices, as {} has",
                               hardware.devices_per_node, hardware.name),
       .got = std::to_string(devices),
       .hint = std::to_string((devices / node + 1) * node)});
  return {.nodes = devices / node,
          .devices_per_node = node,
          .workers_per_node = node};
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

class Adviser {
public:
  explicit Adviser(const AdviseArguments& arguments)
    : arguments_(arguments),
      hardware_(plans::load_cluster_hardware(arguments.hardware)),
      progress_(arguments) {}

  AdviceReport advise() {
    report_.hardware = hardware_;
    report_.price = arguments_.price;
    report_.lengths_are_given = !arguments_.response_tokens.empty();
    if (is_ours(arguments_.words))
      advise_ours();
    else
      advise_system();
    progress_.erase();
    return std::move(report_);
  }

private:
  std::uint32_t gpus() const {
    return static_cast<std::uint32_t>(arguments_.gpus);
  }

  plans::PlanProblem problem_of(Settings settings,
                                const plans::Cluster& cluster) {
    settings.plan = "auto";
    settings.plan_inline = false;
    settings.cluster.nodes = static_cast<int>(cluster.nodes);
    settings.cluster.devices_per_node
      = static_cast<int>(cluster.devices_per_node);
    settings.cluster.workers_per_node
      = static_cast<int>(cluster.workers_per_node);
    auto quiet = arguments_;
    quiet.quiet = true;
    return make_problem(settings, quiet);
  }

  AdvisedPlan simulated(std::string what, const plans::PlanProblem& problem,
                        const plans::ExecutionPlan& plan) {
    AdvisedPlan advised{.what = std::move(what), .plan = plan};
    const auto report = plans::check_plan(problem, plan);
    if (!report.ok())
      advised.why_not = plans::mistake_line(report.errors.front());
    else
      advised.run = plans::simulate(
        problem, plans::CostModel(problem).with_planned_moves(), plan);
    return advised;
  }

  /// The best plan of all, and how good a plan can be.
  struct Searched {
    AdvisedPlan best;
    AdvisedBound bound;
  };

  Searched searched(std::string what, const plans::PlanProblem& problem,
                    const LagChoice& lag) {
    progress_.show("searching the best plan of all");
    try {
      const auto found = find_best(problem, lag);
      return {.best = simulated(std::move(what), problem, found.best.plan),
              .bound = {.step_s = found.lower_bound_s,
                        .proof = plans::proof_sentence(found)}};
    } catch (const PlanError& error) {
      return {.best = {.what = std::move(what), .why_not = error.what()},
              .bound = {.proof = "no plan fits"}};
    }
  }

  void search_best(const plans::PlanProblem& problem, const LagChoice& lag) {
    auto found = searched("best of all", problem, lag);
    report_.best = std::move(found.best);
    report_.bound = std::move(found.bound);
  }

  /// The search does not try everything that a system can: trained weights that
  /// leave their devices, for instance.
  void prefer_of_system() {
    const auto& system = report_.of_system;
    if (!system || !system->run)
      return;
    auto& best = report_.best;
    if (best && best->run && best->run->step_s <= system->run->step_s)
      return;
    best = AdvisedPlan{.what = best ? best->what : "best of all",
                       .plan = system->plan,
                       .run = system->run};
    // its bound is that of its own space
    if (report_.bound.step_s > system->run->step_s)
      report_.bound.step_s = 0;
    report_.bound.proof
      = fmt::format("not proved: this is a layout of {}, outside of the "
                    "search's space",
                    report_.system);
  }

  std::optional<double> best_step(const plans::PlanProblem& problem,
                                  const LagChoice& lag) {
    try {
      return find_best(problem, lag).best.step_s;
    } catch (const PlanError&) {
      return std::nullopt;
    }
  }

  /// Returns the numbers of devices of the table: half to four times.
  /// None of nodes that a file lists, which are those that there are.
  std::vector<std::uint32_t> other_sizes(std::uint32_t devices) const {
    std::vector<std::uint32_t> sizes;
    if (hardware_.num_nodes() > 0)
      return sizes;
    for (const auto count : {devices / 2, devices, 2 * devices, 4 * devices})
      if (count > 0 && count % std::min(count, hardware_.devices_per_node) == 0)
        sizes.push_back(count);
    return sizes;
  }

  // --- settings of ours ---------------------------------------------------

  /// Settings, changed by `changes`, with their problem.
  struct Ours {
    Settings settings;
    plans::PlanProblem problem;
  };

  Ours load_ours(const std::vector<std::string>& changes) {
    const ConfigArguments config{arguments_.words.words};
    auto overrides = config.overrides();
    overrides.insert(overrides.end(), changes.begin(), changes.end());
    Ours ours{.settings = load_settings(config.files(), overrides)};
    ours.problem
      = arguments_.gpus > 0
          ? problem_of(ours.settings, cluster_of_devices(gpus(), hardware_))
          : make_problem(ours.settings, arguments_);
    return ours;
  }

  /// Returns the plan that the settings name; none for one to be searched.
  std::optional<AdvisedPlan> named(const Ours& ours) {
    const bool fits_no_longer
      = arguments_.gpus > 0 && !plans::is_preset(ours.settings.plan);
    const auto named
      = fits_no_longer ? std::nullopt : named_plan(ours.settings, ours.problem);
    return named ? std::optional(
             simulated("plan " + named->name, ours.problem, named->plan))
                 : std::nullopt;
  }

  void what_if_ours() {
    const auto what = "what if " + joined(arguments_.what_if);
    const auto changed = load_ours(arguments_.what_if);
    auto plan = named(changed);
    report_.what_if
      = plan
          ? std::move(*plan)
          : searched(what, changed.problem, lag_choice(changed.settings)).best;
    report_.what_if->what = what;
    for (const auto& word : arguments_.what_if)
      report_.what_if->flags.push_back(plans::parse_change(word));
  }

  void advise_ours() {
    const auto ours = load_ours({});
    const auto& [settings, problem] = ours;
    report_.system = "troupe";
    report_.subject = fmt::format(
      "{}: workflow {} on {} devices of {}", settings.run.name,
      settings.workflow, problem.cluster.num_devices(), hardware_.name);
    search_best(problem, lag_choice(settings));
    report_.own = named(ours).value_or(*report_.best);
    if (!arguments_.what_if.empty())
      what_if_ours();
    if (!arguments_.clusters)
      return;
    for (const auto count : other_sizes(problem.cluster.num_devices())) {
      progress_.show(fmt::format("{} devices", count));
      report_.clusters.push_back(
        {.devices = count,
         .best_s
         = best_step(problem_of(settings, cluster_of_devices(count, hardware_)),
                     lag_choice(settings))});
    }
  }

  // --- another system's ----------------------------------------------------

  /// A recipe on a cluster, with its problem.
  struct Sized {
    plans::Recipe recipe;
    plans::PlanProblem problem; ///< cache: what a plan leaves free
    double cache_bytes = 0;     ///< of the recipe's engine
  };

  Sized sized(const plans::Recipe& recipe, const plans::ImportFacts& facts,
              const plans::Cluster& cluster) {
    Sized out{.recipe = recipe};
    out.recipe.work.nodes = cluster.nodes;
    out.recipe.work.devices_per_node = cluster.devices_per_node;
    out.recipe.layout = plans::resized(recipe.layout, recipe.work.num_devices(),
                                       cluster.num_devices());
    const auto yaml = plans::print_imported(out.recipe, facts);
    const auto settings = parse_settings(yaml, "imported settings");
    out.problem = plans::with_cache(problem_of(settings, cluster), 0);
    out.cache_bytes = plans::cache_bytes(out.recipe, facts);
    return out;
  }

  /// Returns the prediction of a changed recipe, with the flags that change
  /// `own` into it.
  AdvisedPlan of_layout(std::string what, const plans::PlanProblem& problem,
                        const plans::Recipe& changed,
                        const plans::Recipe& own) {
    const auto& layout = changed.layout;
    auto advised
      = simulated(std::move(what), problem,
                  plans::plan_of(layout, problem.workflow, problem.cluster));
    advised.layout = plans::print(layout);
    advised.flags = plans::changed_flags(own, layout, changed.work);
    return advised;
  }

  /// Returns the devices of --gpus, else those that the hardware file lists,
  /// else those of the recipe.
  plans::Cluster cluster_for(const plans::Recipe& recipe) const {
    const auto& work = recipe.work;
    const auto node = hardware_.devices_per_node;
    if (arguments_.gpus == 0 && hardware_.num_nodes() > 0)
      return cluster_of_devices(hardware_.num_nodes() * node, hardware_);
    return arguments_.gpus > 0
             ? cluster_of_devices(gpus(), hardware_)
             : plans::Cluster{.nodes = work.nodes,
                              .devices_per_node = work.devices_per_node,
                              .workers_per_node = work.devices_per_node};
  }

  void advise_system() {
    const auto recipe = read_recipe(arguments_.words);
    const auto facts
      = import_facts(recipe, arguments_.words, hardware_.mem_bytes);
    const auto cluster = cluster_for(recipe);
    const auto own = sized(recipe, facts, cluster);
    describe(own.recipe);
    report_.own = of_layout("what it runs",
                            plans::with_cache(own.problem, own.cache_bytes),
                            own.recipe, own.recipe);
    for (const auto& note : own.recipe.notes)
      if (!report_.own.why_not.empty()
          && note.text == plans::host_optimizer_note)
        report_.own.why_not += " (" + note.text + ")";
    if (!arguments_.what_if.empty())
      what_if_system(own);
    if (const auto best = best_of(own)) {
      auto changed = own.recipe;
      changed.layout = best->layout;
      report_.of_system = of_layout("best that " + report_.system + " can run",
                                    own.problem, changed, own.recipe);
    }
    search_best(own.problem, {.fixed = own.recipe.layout.lag});
    prefer_of_system();
    if (report_.best && report_.best->run)
      report_.inexpressible = plans::inexpressible(
        own.recipe.system, own.problem.workflow, report_.best->plan);
    if (arguments_.clusters)
      compare_clusters(recipe, facts, cluster.num_devices());
  }

  void describe(const plans::Recipe& recipe) {
    const auto& work = recipe.work;
    report_.system = plans::to_string(recipe.system);
    report_.subject = fmt::format(
      "{}: {} of {} on {} devices of {}, {} prompts x {} responses of at most "
      "{} "
      "tokens",
      report_.system, work.workflow, work.models.at("actor"),
      work.num_devices(), hardware_.name, work.get("data.batch_size"),
      work.get("rollout.n"), work.get("rollout.max_new_tokens"));
  }

  /// Predicts a change beside the plan: short words change the layout, any
  /// other key is one of the system's own.
  void what_if_system(const Sized& own) {
    auto words = arguments_.words;
    std::vector<plans::SystemFlag> of_layout_only;
    for (const auto& word : arguments_.what_if) {
      const auto flag = plans::parse_change(word);
      if (plans::is_layout_word(flag.key))
        of_layout_only.push_back(flag);
      else
        words.words.push_back(word);
    }
    const auto recipe = read_recipe(words);
    const auto facts = import_facts(recipe, words, hardware_.mem_bytes);
    auto changed = sized(recipe, facts, cluster_for(recipe));
    for (const auto& flag : of_layout_only)
      changed.recipe.layout
        = plans::changed_layout(changed.recipe.layout, flag.key, flag.value);
    report_.what_if
      = of_layout("what if " + joined(arguments_.what_if),
                  plans::with_cache(changed.problem,
                                    plans::cache_bytes(changed.recipe, facts)),
                  changed.recipe, own.recipe);
  }

  std::optional<plans::PredictedLayout> best_of(const Sized& own) {
    return plans::best_expressible(
      own.recipe, own.problem,
      [&](const std::string& text) { progress_.show(text); });
  }

  void compare_clusters(const plans::Recipe& recipe,
                        const plans::ImportFacts& facts,
                        std::uint32_t devices) {
    for (const auto count : other_sizes(devices)) {
      progress_.show(fmt::format("{} devices", count));
      ClusterRow row{.devices = count};
      try {
        const auto other
          = sized(recipe, facts, cluster_of_devices(count, hardware_));
        const auto own = plans::predict_layout(
          plans::with_cache(other.problem, other.cache_bytes),
          other.recipe.layout);
        if (own.fits())
          row.own_s = own.step_s;
        if (const auto best = best_of(other))
          row.system_s = best->step_s;
        row.best_s
          = best_step(other.problem, {.fixed = other.recipe.layout.lag});
        if (row.system_s && row.best_s)
          row.best_s = std::min(*row.best_s, *row.system_s);
      } catch (const ConfigError&) { // its layout cannot be cut so
      }
      report_.clusters.push_back(row);
    }
  }

  const AdviseArguments& arguments_;
  plans::ClusterHardware hardware_;
  ProgressLine progress_;
  AdviceReport report_;
};

} // namespace

AdviceReport advise(const AdviseArguments& arguments) {
  return Adviser(arguments).advise();
}

} // namespace troupe::runtime
