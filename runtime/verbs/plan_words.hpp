// The words that the planning verbs share (CONFIG, --preset, --plan,
// --hardware, --response-tokens) and the planning problem that they mean. A
// config.json without weights is enough; nothing here starts a process.
#pragma once

#include "config/settings.hpp"
#include "plans/plan_problem.hpp"
#include "plans/presets.hpp"
#include "runtime/verbs/verb.hpp"

#include <optional>
#include <string>

namespace troupe::runtime {

struct PlanWords : VerbOptions {
  ConfigWords config;
  std::string preset;
  std::string plan_file;
  std::string hardware; ///< empty: laptop with the memory of this host
  std::string response_tokens;

  /// --preset and --plan are other words for `plan=...`.
  Settings settings() const;
};
void add_plan_words(CLI::App& verb, PlanWords& words);
/// --hardware, --response-tokens.
void add_problem_words(CLI::App& verb, PlanWords& words);

/// The problem of the settings on that hardware. `nodes: auto` is 1 and
/// `devices_per_node: auto` what the hardware has, unless a plan file of the
/// settings has a cluster of its own.
plans::PlanProblem make_problem(const Settings& settings,
                                const PlanWords& words);

struct NamedPlan {
  plans::ExecutionPlan plan;
  std::string name;
};
/// The plan that the settings name; nullopt for `auto`.
std::optional<NamedPlan> named_plan(const Settings& settings,
                                    const plans::PlanProblem& problem);
/// The same, searched where it is `auto`.
NamedPlan plan_or_search(const Settings& settings,
                         const plans::PlanProblem& problem,
                         const VerbOptions& options);

void add_plan_simulate(CLI::App& plan, VerbRun& chosen);
void add_plan_search(CLI::App& plan, VerbRun& chosen);
void add_plan_compare(CLI::App& plan, VerbRun& chosen);

} // namespace troupe::runtime
