#include "runtime/verbs/plan_words.hpp"

#include "config/error.hpp"
#include "plans/finalists.hpp"
#include "runtime/cluster_choice.hpp"
#include "runtime/device_memory.hpp"
#include "runtime/known_calls.hpp"
#include "runtime/profiler.hpp"
#include "runtime/session_inputs.hpp"
#include "runtime/written_plan.hpp"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <stdexcept>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

bool is_plan_file(const std::string& plan) {
  std::error_code ignored;
  return fs::is_regular_file(plan, ignored);
}

plans::Cluster problem_cluster(const Settings& settings,
                               const plans::Hardware& hardware,
                               bool hardware_is_asked_for) {
  if (const auto written = written_plan(settings);
      written && written->has_cluster)
    return cluster_of(settings, *written);
  const auto number = [](const std::optional<int>& value, std::uint32_t other) {
    return value ? static_cast<std::uint32_t>(*value) : other;
  };
  plans::Cluster cluster;
  cluster.nodes = number(settings.cluster.nodes, 1);
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
  try {
    return plans::parse_lengths(response_tokens, prompt);
  } catch (const std::invalid_argument&) {
    throw ConfigError({.place = {"command line", 0},
                       .path = "--response-tokens",
                       .expected = "tokens as MEAN or MEAN:MAX, MAX >= MEAN",
                       .got = "'" + response_tokens + "'",
                       .hint = "256:1024"});
  }
}

} // namespace

Settings PlanWords::settings() const {
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

void add_plan_words(CLI::App& verb, PlanWords& words) {
  add_config_words(verb, words.config)->required();
  verb.add_option("--preset", words.preset, "A preset in place of `plan`");
  verb.add_option("--plan", words.plan_file, "A plan file in place of `plan`");
}

void add_problem_words(CLI::App& verb, PlanWords& words) {
  verb.add_option("--hardware", words.hardware,
                  "laptop, h100x8, h200x8, a100x8 or a file");
  verb.add_option("--response-tokens", words.response_tokens,
                  "Lengths of answers as MEAN or MEAN:MAX");
}

plans::PlanProblem make_problem(const Settings& settings,
                                const PlanWords& words) {
  plans::PlanProblem problem;
  const bool asked = !words.hardware.empty();
  problem.hardware = plans::load_hardware(asked ? words.hardware : "laptop");
  if (is_plan_file(words.hardware))
    problem.profile = plans::load_profile(words.hardware);
  problem.workflow = known_workflow(settings);
  problem.shapes = read_shapes(settings, problem.workflow);
  problem.cluster = problem_cluster(settings, problem.hardware, asked);
  const bool on_gpu = problem.hardware.mem_bytes > 0;
  auto there = settings; // on the devices of that hardware, or as a run here
  if (asked)
    there.cluster.device = on_gpu ? "gpu" : "cpu";
  else
    there.cluster.device = device_kind(settings);
  auto device_bytes = static_cast<std::uint64_t>(problem.hardware.mem_bytes);
  if (!asked) { // as a run here and `plan check` without --hardware
    problem.for_run = true;
    device_bytes = device_memory_bytes(there, problem.cluster.devices_per_node);
  }
  plans::set_memory(problem, there, device_bytes);
  const auto context
    = plans::make_check_context(there, problem.workflow, {}, device_bytes);
  problem.dtypes = context.dtypes;
  problem.sizes = context.sizes;
  problem.corrects_for_lag = context.corrects_for_lag;
  problem.evaluation = context.evaluation;
  problem.lengths
    = problem_lengths(settings, problem.workflow, words.response_tokens);
  problem.sizes.max_sequence_tokens = static_cast<std::int64_t>(
    problem.lengths.prompt() + problem.lengths.max());
  problem.sizes.max_new_tokens
    = static_cast<std::int64_t>(problem.lengths.max());
  if (on_gpu) {
    problem.sizes = plans::sizes_on_gpu(problem.sizes);
    // `auto` there: large models keep layer inputs only
    problem.sizes.recompute_activations
      = settings.algorithm.recompute != "false";
  }
  if (const auto warning = plans::of_another_machine(
        problem.hardware, words.hardware, profiled_name());
      !warning.empty())
    print_note(words, warning);
  return problem;
}

std::optional<NamedPlan> named_plan(const Settings& settings,
                                    const plans::PlanProblem& problem) {
  if (auto written = written_plan(settings)) {
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
                         const VerbOptions& options) {
  if (auto named = named_plan(settings, problem))
    return std::move(*named);
  const plans::CostModel costs(problem);
  auto found = plans::find_plan(problem, costs,
                                {.chunks = plans::ChunkSearch::afterwards});
  print_note(options, "plan auto: " + plans::summary(found));
  return {std::move(found.best.plan), found.best.origin + " (found by search)"};
}

} // namespace troupe::runtime
