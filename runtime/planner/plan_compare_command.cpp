// plan compare: presets and the search in one table, for one run or for a
// folder of workloads with measured times beside them.
#include "config/base/error.hpp"
#include "plans/cost/cluster_file.hpp"
#include "plans/cost/hardware_sources.hpp"
#include "plans/cost/realhf_flops.hpp"
#include "plans/plan/plan_names.hpp"
#include "plans/search/staleness.hpp"
#include "plans/simulate/published_plans.hpp"
#include "plans/simulate/simulator.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/base/stream_files.hpp"
#include "runtime/planner/compare_rows.hpp"
#include "runtime/planner/html_page.hpp"
#include "runtime/planner/plan_options.hpp"
#include "runtime/planner/progress_line.hpp"
#include "runtime/planner/user_plan.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

struct CompareArguments : PlanArguments {
  std::string suite;
  std::string presets;
  int measure_steps = 0;
};

/// Returns options for a suite without chunks: the published plans have whole
/// calls.
plans::SearchOptions search_options(bool in_suite) {
  return {.chunks = in_suite ? plans::ChunkSearch::presets
                             : plans::ChunkSearch::afterwards};
}

void fill_row(CompareRow& row, const plans::PlanProblem& problem,
              const plans::CostModel& costs, const plans::ExecutionPlan& plan) {
  const auto run = plans::simulate(problem, costs, plan);
  const auto tokens
    = problem.sizes.samples_per_step * problem.lengths.sequence_mean();
  row.step_s = run.step_s;
  row.pflops = plans::realhf_flops(problem) / run.step_s / 1e15;
  row.tokens_per_s_device = tokens / run.step_s / problem.cluster.num_devices();
  row.idle_share = run.idle_share;
  row.moved_bytes = run.moved_bytes();
  for (const auto& device : run.devices)
    if (device.peak_bytes > row.peak_bytes) {
      row.peak_bytes = device.peak_bytes;
      row.peak_task = device.peak_task;
    }
}

/// Returns the row of a plan that `make` makes; for one that does not fit, with
/// the reason.
template <class Make>
CompareRow make_row(const std::string& workload, const std::string& name,
                    const plans::PlanProblem& problem,
                    const plans::CostModel& costs, Make make) {
  CompareRow row;
  row.workload = workload;
  row.plan = name;
  try {
    const plans::ExecutionPlan plan = make();
    fill_row(row, problem, costs, plan);
    row.fitted = plan;
  } catch (const PlanError& error) {
    row.reason = error.what();
  }
  return row;
}

/// Returns the row of a preset or of the search, which may lag that far.
CompareRow compare_one(const std::string& workload, const std::string& name,
                       const plans::PlanProblem& problem, std::uint32_t max_lag,
                       bool in_suite) {
  const plans::CostModel costs(
    problem, in_suite ? plans::published_effects(name) : plans::CostEffects{});
  // the suite's constants were fitted to moves in closed form
  const auto shown = in_suite ? costs : costs.with_planned_moves();
  return make_row(workload, name, problem, shown, [&] {
    if (name == "search")
      return plans::find_plan_within(problem, costs, search_options(in_suite),
                                     max_lag)
        .chosen.best.plan;
    return in_suite ? plans::published_plan(name, problem, costs)
                    : plans::fitted_preset(name, problem);
  });
}

std::vector<std::string> plans_to_compare(const CompareArguments& arguments) {
  std::vector<std::string> names;
  std::stringstream list(arguments.presets);
  for (std::string name; std::getline(list, name, ',');)
    names.push_back(name);
  if (!names.empty()) {
    for (const auto& name : names)
      if (name != "search" && !plans::is_preset(name))
        throw ConfigError(
          {.place = {"command line", 0},
           .path = "--presets",
           .expected = fmt::format("search or presets ({})",
                                   fmt::join(plans::preset_names(), ", ")),
           .got = "'" + name + "'",
           .hint = plans::quoted_nearest(name, plans::preset_names())});
    return names;
  }
  if (!arguments.suite.empty())
    return {"deepspeed_chat", "openrlhf", "megatron", "search"};
  names = plans::preset_names();
  std::erase(names, "flattening"); // deepspeed_chat by another name
  names.emplace_back("search");
  return names;
}

/// Reads FOLDER/measured.json: seconds by workload and plan; it may be absent.
Json measured_of(const std::string& suite) {
  const auto file = fs::path(suite) / "measured.json";
  if (!fs::exists(file))
    return Json::object();
  const auto json = Json::parse(read_file(file), nullptr, false);
  if (!json.is_object() || !json.contains("seconds"))
    throw ConfigError({.place = {file.string(), 0},
                       .path = "",
                       .expected = "{\"seconds\": {WORKLOAD: {PLAN: number}}}",
                       .got = "other JSON, or none",
                       .hint = "examples/paper/measured.json"});
  return json["seconds"];
}

std::vector<fs::path> suite_files(const std::string& suite) {
  std::error_code ignored; // a folder that does not exist has no files
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(suite, ignored))
    if (entry.path().extension() == ".yaml")
      files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

/// Returns the hardware's name; published tables were measured on the hardware
/// that a100x8 was fitted to.
std::string hardware_name(const CompareArguments& arguments) {
  if (!arguments.hardware.empty())
    return arguments.hardware;
  return arguments.suite.empty() ? "laptop" : "a100x8";
}

std::vector<CompareRow> compare_suite(const CompareArguments& arguments) {
  const auto measured = measured_of(arguments.suite);
  std::vector<CompareRow> rows;
  ProgressLine progress(arguments);
  const auto files = suite_files(arguments.suite);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto& file = files[i];
    const auto workload = file.stem().string();
    progress.show(
      fmt::format("workload {} of {}: {}", i + 1, files.size(), workload));
    auto own = arguments;
    own.hardware = hardware_name(arguments);
    own.storage = Storage::published;
    own.quiet |= !rows.empty(); // notes are the same for all workloads
    const auto settings
      = load_settings({file.string()}, arguments.config.overrides());
    if (!settings.cluster.nodes)
      continue; // for any cluster: not a workload of the suite
    const auto problem = make_problem(settings, own);
    for (const auto& name : plans_to_compare(arguments)) {
      auto row = compare_one(workload, name, problem, max_lag_of(settings),
                             /*in_suite=*/true);
      if (measured.contains(workload) && measured[workload].contains(name))
        row.measured_s = measured[workload][name].get<double>();
      rows.push_back(std::move(row));
    }
  }
  if (rows.empty())
    throw ConfigError(
      {.place = {"command line", 0},
       .path = "--suite",
       .expected = "a folder of settings files that name cluster.nodes",
       .got = "'" + arguments.suite + "'",
       .hint = "examples/paper"});
  return rows;
}

/// Runs the row's plan and predicts it again for samples as long as the run's
/// were.
void measure_row(CompareRow& row, plans::PlanProblem problem,
                 const CompareArguments& arguments) {
  const auto measured = arguments.host.measure(arguments.config, *row.fitted,
                                               arguments.measure_steps);
  row.measured = measured.costs;
  if (!row.measured) {
    row.reason = measured.why;
    return;
  }
  row.measured_s = row.measured->step_s;
  if (row.measured->response_tokens == 0)
    return;
  problem.lengths
    = plans::Lengths(row.measured->prompt_tokens, row.measured->response_tokens,
                     row.measured->longest_response_tokens);
  fill_row(row, problem, plans::CostModel(problem).with_planned_moves(),
           *row.fitted);
}

std::vector<CompareRow> compare_config(const CompareArguments& arguments) {
  const auto settings = arguments.settings();
  auto problem = make_problem(settings, arguments);
  problem.for_run |= arguments.measure_steps > 0;
  auto names = plans_to_compare(arguments);
  std::vector<CompareRow> rows;
  if (plans::is_preset(settings.plan)) {
    if (std::ranges::count(names, settings.plan) == 0)
      names.insert(names.begin(), settings.plan);
  } else if (const auto own = named_plan(settings, problem)) {
    rows.push_back(make_row(settings.run.name, own->name, problem,
                            plans::CostModel(problem).with_planned_moves(),
                            [&] { return own->plan; }));
    rows.back().own = true;
  }
  ProgressLine progress(arguments);
  for (std::size_t i = 0; i < names.size(); ++i) {
    progress.show(
      fmt::format("plan {} of {}: {}", i + 1, names.size(), names[i]));
    rows.push_back(compare_one(settings.run.name, names[i], problem,
                               max_lag_of(settings), /*in_suite=*/false));
    rows.back().own = names[i] == settings.plan;
  }
  for (auto& row : rows)
    if (arguments.measure_steps > 0 && row.fitted) {
      progress.show(fmt::format("running {} steps of {}",
                                arguments.measure_steps, row.plan));
      measure_row(row, problem, arguments);
    }
  return rows;
}

/// Writes the plans side by side: seconds as bars, then each step's picture.
void write_compare_page(const CompareArguments& arguments,
                        const std::vector<CompareRow>& rows,
                        const std::string& table) {
  const auto settings = arguments.settings();
  auto quiet = arguments;
  quiet.quiet = true;
  const auto problem = make_problem(settings, quiet);
  HtmlPage page(
    fmt::format("plans of {} on {}", settings.run.name, problem.hardware.name));
  std::vector<HtmlBar> bars;
  for (const auto& row : rows)
    if (row.fits())
      bars.push_back({row.plan + (row.own ? " (own)" : ""), row.step_s,
                      fmt::format("idle {:.0f} %", 100 * row.idle_share)});
  page.bars(bars, "s a step");
  page.preformatted(table);
  const auto costs = plans::CostModel(problem).with_planned_moves();
  for (const auto& row : rows)
    if (row.fits() && row.fitted)
      page.step(row.plan, plans::simulate(problem, costs, *row.fitted));
  write_result(arguments.html, page.print());
}

void check_compare_words(const CompareArguments& arguments) {
  const bool files = !arguments.config.files().empty();
  if (arguments.suite.empty() && !files)
    throw ConfigError({.place = {"command line", 0},
                       .path = "",
                       .expected = "CONFIG or --suite FOLDER",
                       .got = "neither",
                       .hint = "--suite examples/paper"});
  if (!arguments.suite.empty() && files)
    throw ConfigError({.place = {"command line", 0},
                       .path = "",
                       .expected = "CONFIG or --suite FOLDER",
                       .got = "both",
                       .hint = "one of the two"});
  if (!arguments.suite.empty() && arguments.measure_steps > 0)
    throw ConfigError(
      {.place = {"command line", 0},
       .path = "--measure",
       .expected = "CONFIG, whose plans run here",
       .got = "--suite",
       .hint = "a file of " + arguments.suite + " in its place"});
  if (!arguments.suite.empty() && !arguments.html.empty())
    throw ConfigError(
      {.place = {"command line", 0},
       .path = "--html",
       .expected = "CONFIG, whose plans are drawn",
       .got = "--suite",
       .hint = "a file of " + arguments.suite + " in its place"});
  if (!arguments.html.empty())
    check_out_file(arguments.html, "--html");
}

int compare_command(const CompareArguments& arguments) {
  check_compare_words(arguments);
  auto rows = arguments.suite.empty() ? compare_config(arguments)
                                      : compare_suite(arguments);
  compare_with_search(rows);
  const auto hardware = plans::load_cluster_hardware(hardware_name(arguments));
  auto table
    = arguments.suite.empty()
        ? compare_table(rows, CompareTable::of_config)
        : compare_table(rows, CompareTable::of_suite) + error_summary(rows);
  table += plans::basis_of(hardware);
  if (!arguments.html.empty())
    write_compare_page(arguments, rows, table);
  print_out(arguments.json ? compare_json(rows, hardware) : table);
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_plan_compare(CLI::App& plan, CommandRun& chosen,
                      const PlanHost& host) {
  auto arguments = std::make_shared<CompareArguments>();
  arguments->host = host;
  auto* command = plan.add_subcommand(
    "compare", "Presets, the search and the config's own plan (own) in one "
               "table, predicted and measured");
  add_config_arguments(*command, arguments->config);
  add_problem_arguments(*command, *arguments);
  add_html_option(*command, *arguments);
  command->add_option("--suite", arguments->suite,
                      "A folder of settings files");
  command->add_option("--presets", arguments->presets,
                      "Comma-separated; `search` is one");
  if (host.measure)
    command
      ->add_option("--measure", arguments->measure_steps,
                   "Run this many steps of each preset here; predictions are "
                   "then for samples as long as that run's")
      ->check(CLI::NonNegativeNumber);
  add_table_options(*command, *arguments);
  command->callback([arguments, &chosen] {
    chosen = [arguments] { return compare_command(*arguments); };
  });
}

} // namespace troupe::runtime
