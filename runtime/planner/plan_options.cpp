#include "runtime/planner/plan_options.hpp"

#include "config/base/error.hpp"
#include "plans/cost/cluster_file.hpp"
#include "plans/search/staleness.hpp"
#include "plans/simulate/published_plans.hpp"
#include "runtime/planner/measured_lengths.hpp"
#include "runtime/planner/role_shapes.hpp"
#include "runtime/planner/user_plan.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

bool is_plan_file(const std::string& plan) {
  std::error_code ignored;
  return fs::is_regular_file(plan, ignored);
}

/// Throws unless the cluster has as many nodes as the hardware file lists.
void check_nodes(const Settings& settings, const plans::Cluster& cluster,
                 const plans::ClusterHardware& hardware,
                 const std::string& file) {
  const auto listed = hardware.num_nodes();
  if (listed == 0 || cluster.nodes == listed)
    return;
  const std::string path = "cluster.nodes";
  throw ConfigError(
    {.place = place_of(settings, path),
     .path = path,
     .expected = fmt::format("{}, the nodes of {}", listed, file),
     .got = std::to_string(cluster.nodes),
     .hint = fmt::format("{}={}", path, listed)});
}

plans::Cluster problem_cluster(const Settings& settings,
                               const plans::ClusterHardware& hardware,
                               bool hardware_is_asked_for) {
  if (const auto written = user_plan(settings); written && written->has_cluster)
    return cluster_of(settings, *written);
  const auto number = [](const std::optional<int>& value, std::uint32_t other) {
    return value ? static_cast<std::uint32_t>(*value) : other;
  };
  plans::Cluster cluster;
  cluster.nodes
    = number(settings.cluster.nodes, std::max(1u, hardware.num_nodes()));
  cluster.devices_per_node
    = number(settings.cluster.devices_per_node,
             hardware_is_asked_for ? hardware.devices_per_node : 1);
  cluster.workers_per_node = number(settings.cluster.workers_per_node, 1);
  return cluster;
}

plans::Lengths problem_lengths(const Settings& settings,
                               const plans::Workflow& workflow,
                               const std::string& response_tokens) {
  if (!workflow.samples_are_prompts && !response_tokens.empty())
    throw ConfigError({.place = {"command line", 0},
                       .path = "--response-tokens",
                       .expected = "a workflow that generates answers",
                       .got = workflow.name,
                       .hint = "data.max_tokens=TOKENS"});
  if (!workflow.samples_are_prompts)
    return {0, double(settings.data.max_tokens),
            double(settings.data.max_tokens)};
  const double prompt = settings.data.max_prompt_tokens;
  const double longest = settings.rollout.max_new_tokens;
  if (response_tokens.empty())
    return {prompt, longest, longest};
  std::error_code ignored;
  if (std::filesystem::exists(response_tokens, ignored))
    return {prompt, read_response_lengths(response_tokens)};
  try {
    return plans::parse_lengths(response_tokens, prompt);
  } catch (const std::invalid_argument&) {
    throw ConfigError({.place = {"command line", 0},
                       .path = "--response-tokens",
                       .expected
                       = "tokens as MEAN or MEAN:MAX, MAX >= MEAN, or "
                         "a run or a file that has them",
                       .got = "'" + response_tokens + "'",
                       .hint = "256:1024"});
  }
}

/// Sets the sizes of responses: a run has room for the longest that its
/// settings allow, however long responses are; a problem with longer ones has
/// room for those.
void allow_lengths(plans::BatchSizes& sizes, const plans::Lengths& lengths) {
  const auto longest = static_cast<std::int64_t>(lengths.max());
  const auto prompt = static_cast<std::int64_t>(lengths.prompt());
  sizes.max_new_tokens = std::max(sizes.max_new_tokens, longest);
  sizes.max_sequence_tokens
    = std::max(sizes.max_sequence_tokens, prompt + longest);
}

} // namespace

Settings PlanArguments::settings() const {
  if (!preset.empty() && !plan_file.empty())
    throw ConfigError({.place = {"command line", 0},
                       .path = "--plan",
                       .expected = "--preset or --plan",
                       .got = "both",
                       .hint = "one of the two"});
  auto overrides = config.overrides();
  if (!preset.empty())
    overrides.push_back("plan=" + preset);
  if (!plan_file.empty())
    overrides.push_back("plan=" + plan_file);
  return load_settings(config.files(), overrides);
}

void add_plan_arguments(CLI::App& command, PlanArguments& arguments) {
  add_config_arguments(command, arguments.config)->required();
  command.add_option("--preset", arguments.preset,
                     "A preset in place of `plan`");
  command.add_option("--plan", arguments.plan_file,
                     "A plan file in place of `plan`");
}

void add_html_option(CLI::App& command, PlanArguments& arguments) {
  command.add_option("--html", arguments.html,
                     "Write a self-contained page with the pictures");
}

void add_problem_arguments(CLI::App& command, PlanArguments& arguments) {
  command.add_option("--hardware", arguments.hardware,
                     "laptop, h100x8, h200x8, a100x8 or a file, which may "
                     "list nodes of several kinds");
  command.add_option("--response-tokens", arguments.response_tokens,
                     "Lengths of answers as MEAN or MEAN:MAX, or those of a "
                     "run's folder or of a file with a number per line");
  command.add_flag_callback(
    "--published", [&arguments] { arguments.storage = Storage::published; },
    "Count memory as published engines on GPUs do (16 bits, recomputation), "
    "not as a run here; --suite always does");
}

plans::PlanProblem make_problem(const Settings& settings,
                                const PlanArguments& arguments) {
  plans::PlanProblem problem;
  const bool asked = !arguments.hardware.empty();
  problem.hardware
    = asked ? plans::load_cluster_hardware(arguments.hardware)
            : plans::ClusterHardware(arguments.host.hardware(settings, 1));
  if (is_plan_file(arguments.hardware))
    problem.profile = plans::load_profile(arguments.hardware);
  problem.workflow = plans::in_one_round(arguments.host.workflow(settings));
  problem.shapes = planned_shapes(settings, problem.workflow);
  problem.cluster = problem_cluster(settings, problem.hardware, asked);
  check_nodes(settings, problem.cluster, problem.hardware, arguments.hardware);
  const bool on_gpu = problem.hardware.mem_bytes > 0;
  auto there = settings; // on the devices of that hardware, or as a run here
  if (asked)
    there.cluster.device = on_gpu ? "gpu" : "cpu";
  else
    there.cluster.device = arguments.host.device_kind(settings);
  auto device_bytes = static_cast<std::uint64_t>(problem.hardware.mem_bytes);
  if (!asked) { // as a run here and `plan check` without --hardware
    problem.for_run = true;
    device_bytes
      = arguments.host.device_bytes(there, problem.cluster.devices_per_node);
  }
  plans::apply_settings(problem, there, device_bytes);
  problem.lengths
    = problem_lengths(settings, problem.workflow, arguments.response_tokens);
  if (!arguments.response_tokens.empty())
    allow_lengths(problem.sizes, problem.lengths);
  if (arguments.storage == Storage::published) {
    problem.sizes = plans::published_sizes(problem.sizes, settings);
    print_note(arguments, "counted as published engines on GPUs do: 16 bits, "
                          "recomputation; a run here keeps weights in fp32");
  }
  if (const auto warning
      = plans::of_another_machine(problem.hardware, arguments.hardware,
                                  arguments.host.profile_name(there));
      !warning.empty())
    print_note(arguments, warning);
  return problem;
}

std::optional<NamedPlan> named_plan(const Settings& settings,
                                    const plans::PlanProblem& problem) {
  if (auto written = user_plan(settings)) {
    written->plan.cluster = problem.cluster;
    return NamedPlan{std::move(written->plan), std::move(written->name)};
  }
  if (settings.plan == "auto")
    return std::nullopt;
  if (!plans::is_preset(settings.plan))
    refuse_plan_name(settings);
  const auto make
    = [&] { return plans::fitted_preset(settings.plan, problem); };
  return NamedPlan{named_by_user(settings, make), settings.plan};
}

NamedPlan plan_or_search(const Settings& settings,
                         const plans::PlanProblem& problem,
                         const CommandOptions& options) {
  if (auto named = named_plan(settings, problem))
    return std::move(*named);
  const plans::CostModel costs(problem);
  auto found = plans::find_plan_within(
                 problem, costs, {.chunks = plans::ChunkSearch::afterwards},
                 max_lag_of(settings))
                 .chosen;
  print_note(options, "plan auto: " + plans::summary(found));
  return {std::move(found.best.plan), found.best.origin + " (found by search)"};
}

} // namespace troupe::runtime
