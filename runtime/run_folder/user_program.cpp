#include "runtime/run_folder/user_program.hpp"

#include "actors/worker_base/user_calls.hpp"
#include "config/base/error.hpp"
#include "config/settings/user_sections.hpp"
#include "models/losses/user_loss.hpp"
#include "plans/workflow/user_workflow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace troupe::runtime {

namespace {

using detail::UserCall;

[[noreturn]] void user_mistake(const detail::WorkflowParts& workflow,
                               const std::string& what) {
  throw ConfigError(Place{},
                    fmt::format("workflow {}: {}", workflow.name, what));
}

detail::UserActor actor_of(const UserProgram& program,
                           const detail::WorkflowParts& workflow,
                           const UserCall& call) {
  const auto at = std::ranges::find(program.actors, call.actor,
                                    &detail::UserActor::factory);
  if (at == program.actors.end())
    user_mistake(workflow,
                 fmt::format("{} runs an actor that is not in the App; add "
                             ".spawnable(\"{}\", ..) to it",
                             call.name, call.name));
  return *at;
}

std::string used_by(const UserProgram& program,
                    const detail::UserActor& actor) {
  for (const auto& workflow : program.workflows)
    for (const UserCall& call : workflow.calls)
      if (call.actor == actor.factory)
        return fmt::format("for call {} of {}", call.name, workflow.name);
  return "for no call";
}

/// Checks sections: an actor cannot begin without its settings.
void check_sections(const UserProgram& program) {
  for (const auto& actor : program.actors)
    if (!actor.section.empty()
        && std::ranges::find(program.sections, actor.section,
                             &detail::UserSection::name)
             == program.sections.end())
      throw ConfigError(
        Place{}, fmt::format("spawnable {} takes settings of section {}, which "
                             "the App does not have; add .add(SECTION) to it",
                             actor.name, actor.section));
}

/// Checks actors: one name twice would be two tracks of the trace, one factory
/// twice would leave the second's name and section unused.
void check_actors(const UserProgram& program) {
  const auto& actors = program.actors;
  for (auto second = actors.begin(); second != actors.end(); ++second) {
    const auto first = std::find_if(actors.begin(), second, [&](const auto& a) {
      return a.name == second->name || a.factory == second->factory;
    });
    if (first == second)
      continue;
    if (first->factory == second->factory)
      throw ConfigError(
        Place{}, fmt::format("spawnables {} and {} are the same actor; try a "
                             "factory function for each",
                             first->name, second->name));
    throw ConfigError(
      Place{}, fmt::format("two spawnables are named {}: one {}, one {}; try "
                           "another name for one",
                           first->name, used_by(program, *first),
                           used_by(program, *second)));
  }
}

bool has_scalar_head(const detail::WorkflowParts& workflow,
                     const std::string& role) {
  const auto at
    = std::ranges::find(workflow.roles, role, &detail::UserRole::name);
  return at != workflow.roles.end() && at->kind.has_scalar_head;
}

void check_mean_over(const detail::WorkflowParts& workflow,
                     const UserCall& call) {
  if (!call.mean_over.key.empty()
      && std::ranges::find(call.reads, call.mean_over.key, &KeyInfo::name)
           == call.reads.end())
    user_mistake(
      workflow, fmt::format("{} is a mean over {}, which is not in its reads()",
                            call.name, call.mean_over.key));
}

/// Checks trainings: a second one would find the weights that the first has
/// changed (I4).
void check_trainings(const detail::WorkflowParts& workflow) {
  std::set<std::string> trained;
  for (const UserCall& call : workflow.calls)
    if (call.loss != nullptr && !trained.insert(call.role).second)
      user_mistake(workflow,
                   fmt::format("role {} is trained by two calls; try one loss "
                               "that sums both",
                               call.role));
}

/// Checks a workflow's name, which precedes a dot in files:
/// "my_workflow.my_call".
void check_name(const detail::WorkflowParts& workflow) {
  if (!plans::is_plain_name(workflow.name))
    throw ConfigError(Place{},
                      fmt::format("workflow '{}' needs a name of letters, "
                                  "digits, _ and -",
                                  workflow.name));
}

/// Checks metrics: of two with one name a step would show their mean.
void check_metrics(const detail::WorkflowParts& workflow) {
  std::set<std::string> names;
  const auto add = [&](const std::string& name) {
    if (name.empty() || name == "step")
      user_mistake(workflow, fmt::format("no metric can be named '{}'; try "
                                         "{}/NAME",
                                         name, workflow.name));
    if (!names.insert(name).second)
      user_mistake(workflow,
                   fmt::format("two metrics are named {}; try another name for "
                               "one",
                               name));
  };
  for (const auto& metric : workflow.metrics)
    add(metric.name);
  for (const auto& metric : workflow.carried_metrics)
    add(metric.name);
}

void check_call(const UserProgram& program,
                const detail::WorkflowParts& workflow, const UserCall& call) {
  if (call.loss != nullptr)
    check_mean_over(workflow, call);
  if (call.actor != nullptr)
    actor_of(program, workflow, call);
}

void register_call(const UserProgram& program,
                   const detail::WorkflowParts& workflow,
                   const UserCall& call) {
  const auto fn = plans::user_fn(workflow.name, call.name);
  if (call.loss != nullptr) {
    models::add_loss(
      models::user_loss_entry(fn, call, has_scalar_head(workflow, call.role)));
  } else if (call.actor != nullptr) {
    actors::add_user_entry(
      fn, {.call = call, .actor = actor_of(program, workflow, call)});
  } else if (call.function) {
    actors::add_user_entry(fn, {.call = call});
  }
}

void register_workflow(const UserProgram& program,
                       const detail::WorkflowParts& workflow) {
  check_name(workflow);
  check_metrics(workflow);
  plans::check_key_types(workflow);
  plans::check_carried(workflow);
  plans::check_sources(workflow);
  check_trainings(workflow);
  for (const auto& call : workflow.calls)
    check_call(program, workflow, call);
  plans::check(plans::user_workflow(workflow));
  std::vector<std::string> sections;
  for (const auto& section : program.sections)
    sections.push_back(section.name);
  add_workflow_traits(plans::user_traits(workflow, std::move(sections)));
  for (const auto& call : workflow.calls)
    register_call(program, workflow, call);
  if (!workflow.metrics.empty())
    actors::add_user_entry(
      plans::user_fn(workflow.name, plans::metrics_call),
      {.call = {.name = plans::metrics_call}, .metrics = workflow.metrics});
  plans::add_workflow_maker(workflow.name, [workflow](const Settings&) {
    return plans::user_workflow(workflow);
  });
}

} // namespace

void register_user_program(const UserProgram& program) {
  check_actors(program);
  check_sections(program);
  for (const auto& section : program.sections)
    add_user_section(section);
  for (const auto& workflow : program.workflows)
    register_workflow(program, workflow);
}

} // namespace troupe::runtime
