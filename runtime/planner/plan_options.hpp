// Arguments that the planning commands share (CONFIG, --preset, --plan,
// --hardware, --response-tokens, --published) and the planning problem that
// they describe: its memory is what a run would take of such devices. A
// config.json without weights is enough; nothing here starts a process.
#pragma once

#include "config/settings/settings.hpp"
#include "plans/cost/plan_problem.hpp"
#include "plans/presets/presets.hpp"
#include "runtime/planner/command_options.hpp"
#include "runtime/planner/plan_host.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::runtime {

/// The engine whose memory a problem counts.
enum class Storage : std::uint8_t {
  own,      ///< Troupe: what a run keeps on devices of that kind
  published ///< the systems in published tables (`plans::published_sizes`)
};

struct PlanArguments : CommandOptions {
  PlanHost host = planning_host();
  ConfigArguments config;
  std::string preset;
  std::string plan_file;
  std::string hardware; ///< empty: shipped numbers for this host
  std::string response_tokens;
  std::string html; ///< file of a page; empty: none
  Storage storage = Storage::own;

  /// Returns the settings; --preset and --plan are short for `plan=...`.
  Settings settings() const;
};
void add_plan_arguments(CLI::App& command, PlanArguments& arguments);
/// Adds --html, for commands with pictures.
void add_html_option(CLI::App& command, PlanArguments& arguments);
/// Adds --hardware, --response-tokens, --published.
void add_problem_arguments(CLI::App& command, PlanArguments& arguments);

/// Returns the problem of the settings on that hardware. `nodes: auto` is 1 and
/// `devices_per_node: auto` what the hardware has, unless a plan file of the
/// settings has a cluster of its own.
plans::PlanProblem make_problem(const Settings& settings,
                                const PlanArguments& arguments);

struct NamedPlan {
  plans::ExecutionPlan plan;
  std::string name;
};
/// Returns the plan that the settings name; nullopt for `auto`.
std::optional<NamedPlan> named_plan(const Settings& settings,
                                    const plans::PlanProblem& problem);
/// Returns the plan that the settings name, searched if it is `auto`.
NamedPlan plan_or_search(const Settings& settings,
                         const plans::PlanProblem& problem,
                         const CommandOptions& options);

void add_plan_simulate(CLI::App& plan, CommandRun& chosen,
                       const PlanHost& host);
void add_plan_search(CLI::App& plan, CommandRun& chosen, const PlanHost& host);
void add_plan_compare(CLI::App& plan, CommandRun& chosen, const PlanHost& host);
void add_plan_import(CLI::App& plan, CommandRun& chosen);
void add_plan_advise(CLI::App& plan, CommandRun& chosen, const PlanHost& host);
void add_plan_replay(CLI::App& plan, CommandRun& chosen, const PlanHost& host);
/// Adds all commands of `troupe plan`, which are those of `troupe-plan`.
void add_plan_commands(CLI::App& plan, CommandRun& chosen,
                       const PlanHost& host);

} // namespace troupe::runtime
