#include "runtime/own_program.hpp"

#include "actors/own_calls.hpp"
#include "config/error.hpp"
#include "config/own_sections.hpp"
#include "models/own_loss.hpp"
#include "plans/own_workflow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace troupe::runtime {

namespace {

using detail::OwnCall;

[[noreturn]] void own_mistake(const detail::WorkflowParts& workflow,
                              const std::string& what) {
  throw ConfigError(Place{},
                    fmt::format("workflow {}: {}", workflow.name, what));
}

detail::OwnActor actor_of(const OwnProgram& program,
                          const detail::WorkflowParts& workflow,
                          const OwnCall& call) {
  const auto at
    = std::ranges::find(program.actors, call.actor, &detail::OwnActor::factory);
  if (at == program.actors.end())
    own_mistake(workflow,
                fmt::format("{} runs an actor that the App does not know; add "
                            ".spawnable(\"{}\", ..) to it",
                            call.name, call.name));
  return *at;
}

std::string used_by(const OwnProgram& program, const detail::OwnActor& actor) {
  for (const auto& workflow : program.workflows)
    for (const OwnCall& call : workflow.calls)
      if (call.actor == actor.factory)
        return fmt::format("for call {} of {}", call.name, workflow.name);
  return "for no call";
}

/// An actor cannot begin without its settings.
void check_sections(const OwnProgram& program) {
  for (const auto& actor : program.actors)
    if (!actor.section.empty()
        && std::ranges::find(program.sections, actor.section,
                             &detail::OwnSection::name)
             == program.sections.end())
      throw ConfigError(
        Place{}, fmt::format("spawnable {} takes settings of section {}, which "
                             "the App does not have; add .add(SECTION) to it",
                             actor.name, actor.section));
}

/// One name would mean two rows of the trace, one factory leaves the second's
/// name and section unused.
void check_actors(const OwnProgram& program) {
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
    = std::ranges::find(workflow.roles, role, &detail::OwnRole::name);
  return at != workflow.roles.end() && at->kind.has_scalar_head;
}

void check_mean_over(const detail::WorkflowParts& workflow,
                     const OwnCall& call) {
  if (!call.mean_over.key.empty()
      && std::ranges::find(call.reads, call.mean_over.key, &KeyInfo::name)
           == call.reads.end())
    own_mistake(workflow,
                fmt::format("{} is a mean over {}, which is not in its reads()",
                            call.name, call.mean_over.key));
}

/// A second one would find the weights that the first has changed (I4).
void check_trainings(const detail::WorkflowParts& workflow) {
  std::set<std::string> trained;
  for (const OwnCall& call : workflow.calls)
    if (call.loss != nullptr && !trained.insert(call.role).second)
      own_mistake(workflow,
                  fmt::format("role {} is trained by two calls; try one loss "
                              "that sums both",
                              call.role));
}

/// In files the name stands before a dot: "my_workflow.my_call".
void check_name(const detail::WorkflowParts& workflow) {
  if (!plans::is_plain_name(workflow.name))
    throw ConfigError(Place{},
                      fmt::format("workflow '{}' needs a name of letters, "
                                  "digits, _ and -",
                                  workflow.name));
}

/// Of two metrics of one name a step would show their mean.
void check_metrics(const detail::WorkflowParts& workflow) {
  std::set<std::string> names;
  const auto add = [&](const std::string& name) {
    if (name.empty() || name == "step")
      own_mistake(workflow, fmt::format("no metric can be named '{}'; try "
                                        "{}/NAME",
                                        name, workflow.name));
    if (!names.insert(name).second)
      own_mistake(workflow,
                  fmt::format("two metrics are named {}; try another name for "
                              "one",
                              name));
  };
  for (const auto& metric : workflow.metrics)
    add(metric.name);
  for (const auto& metric : workflow.carried_metrics)
    add(metric.name);
}

void check_call(const OwnProgram& program,
                const detail::WorkflowParts& workflow, const OwnCall& call) {
  if (call.loss != nullptr)
    check_mean_over(workflow, call);
  if (call.actor != nullptr)
    actor_of(program, workflow, call);
}

void register_call(const OwnProgram& program,
                   const detail::WorkflowParts& workflow, const OwnCall& call) {
  const auto fn = plans::own_fn(workflow.name, call.name);
  if (call.loss != nullptr) {
    models::add_loss(
      models::own_loss_entry(fn, call, has_scalar_head(workflow, call.role)));
  } else if (call.actor != nullptr) {
    actors::add_own_entry(
      fn, {.call = call, .actor = actor_of(program, workflow, call)});
  } else if (call.function) {
    actors::add_own_entry(fn, {.call = call});
  }
}

void register_workflow(const OwnProgram& program,
                       const detail::WorkflowParts& workflow) {
  check_name(workflow);
  check_metrics(workflow);
  plans::check_key_types(workflow);
  plans::check_carried(workflow);
  plans::check_sources(workflow);
  check_trainings(workflow);
  for (const auto& call : workflow.calls)
    check_call(program, workflow, call);
  plans::check(plans::own_workflow(workflow));
  std::vector<std::string> sections;
  for (const auto& section : program.sections)
    sections.push_back(section.name);
  add_workflow_traits(plans::own_traits(workflow, std::move(sections)));
  for (const auto& call : workflow.calls)
    register_call(program, workflow, call);
  if (!workflow.metrics.empty())
    actors::add_own_entry(
      plans::own_fn(workflow.name, plans::metrics_call),
      {.call = {.name = plans::metrics_call}, .metrics = workflow.metrics});
  plans::add_workflow_maker(workflow.name, [workflow](const Settings&) {
    return plans::own_workflow(workflow);
  });
}

} // namespace

void register_own_program(const OwnProgram& program) {
  check_actors(program);
  check_sections(program);
  for (const auto& section : program.sections)
    add_own_section(section);
  for (const auto& workflow : program.workflows)
    register_workflow(program, workflow);
}

} // namespace troupe::runtime
