// troupe::testing::Kit: the calls of a user-defined workflow one after the
// other, with fakes in place of models.
#include "actors/protocol/system.hpp"
#include "actors/user/user_actors.hpp"
#include "actors/user/user_work.hpp"
#include "plans/workflow/user_workflow.hpp"
#include "plans/workflow/workflow.hpp"
#include "runtime/run_folder/user_program.hpp"

#include "troupe/actor.hpp"
#include "troupe/testing.hpp"
#include <fmt/format.h>

#include <future>

namespace troupe::testing {

namespace {

[[noreturn]] void kit_mistake(const detail::UserCall& call,
                              const std::string& what) {
  throw std::runtime_error(fmt::format("{}: {}", call.name, what));
}

using ActorResult = std::variant<std::vector<Sample>, Failure>;

using Engine = std::function<void(Sample&)>;

/// Returns an actor that makes the turns of a fake model.
detail::ModelActor::behavior_type fake_model(detail::ModelActor::pointer,
                                             const Engine& engine) {
  return {[engine](detail::extend_atom, Sample& sample, std::uint32_t,
                   const std::string&) {
    engine(sample);
    const auto before
      = sample.has(keys::response) ? sample[keys::response] : std::string{};
    sample.set(keys::response, before + sample[keys::turn]);
    sample.set(keys::appended, "");
    return sample;
  }};
}

/// Returns the sample with the keys that the call reads, as in a run.
Sample seen_by(const detail::UserCall& call, const Sample& sample) {
  Sample seen(sample.id(), sample.group());
  for (const auto& entry : sample.entries())
    if (std::ranges::find(call.reads, entry.key, &KeyInfo::name)
        != call.reads.end())
      seen.entries().push_back(entry);
  return seen;
}

void take_over(Sample& sample, Sample& from) {
  for (auto& entry : from.entries()) {
    std::erase_if(sample.entries(),
                  [&](const auto& old) { return old.key == entry.key; });
    sample.entries().push_back(std::move(entry));
  }
}

void run_actor(const detail::UserActor& actor, const std::any& section,
               const detail::UserCall& call, const Engine& engine,
               std::vector<Sample>& samples) {
  actors::SystemConfig config(0);
  caf::actor_system system(config);
  Spawn spawn{.system = system, .section = section, .row = actor.name};
  if (engine)
    spawn.model = system.spawn(fake_model, engine);
  actor.spawner(spawn);
  std::vector<Sample> seen;
  for (const Sample& sample : samples)
    seen.push_back(seen_by(call, sample));
  std::promise<ActorResult> promise;
  const actors::UserActorPool pool(
    system,
    {.name = "samples of " + call.name,
     .instances = {spawn.actor},
     .timeout = std::chrono::seconds(ClusterSettings{}.own_actor_timeout_s)},
    spawn.model);
  pool.run({.who = actor.name,
            .samples = std::move(seen),
            .done = [&](ActorResult result) {
              promise.set_value(std::move(result));
            }});
  auto result = promise.get_future().get();
  if (const auto* failure = std::get_if<Failure>(&result))
    kit_mistake(call, to_string(*failure));
  auto& back = std::get<std::vector<Sample>>(result);
  for (std::size_t i = 0; i < samples.size(); ++i)
    take_over(samples[i], back[i]);
}

void check_writes(const detail::UserCall& call,
                  const std::vector<Sample>& samples) {
  for (const Sample& sample : samples)
    for (const KeyInfo& key : call.writes)
      if (std::ranges::find(sample.entries(), key.name, &Sample::Entry::key)
          == sample.entries().end())
        kit_mistake(call,
                    fmt::format("sample {} has no {}", sample.id(), key.name));
}

} // namespace

std::vector<Sample> samples(std::uint32_t groups, std::uint32_t n) {
  std::vector<Sample> made;
  for (std::uint32_t id = 0; id < groups * n; ++id)
    made.emplace_back(id, id / n);
  return made;
}

Kit::Kit(App app, std::string workflow) {
  const auto& program = app.program();
  actors_ = program.actors;
  for (const auto& section : program.sections)
    sections_[section.name] = section.defaults;
  for (const auto& parts : program.workflows)
    if (parts.name == workflow)
      workflow_ = parts;
  if (workflow_.name.empty())
    throw std::runtime_error("the App has no workflow " + workflow);
  plans::check_key_types(workflow_);
  plans::check_carried(workflow_);
  plans::check(plans::user_workflow(workflow_));
}

void Kit::run(const detail::UserCall& call, std::vector<Sample>& samples) {
  using detail::UserKind;
  const auto fake = fakes_.find(call.name);
  const auto engine = fake == fakes_.end() ? Engine{} : fake->second;
  if (call.kind == UserKind::generate && call.actor != nullptr && !engine)
    kit_mistake(call, "needs a fake of the model's turns");
  if (engine && call.actor == nullptr) {
    for (Sample& sample : samples)
      engine(sample);
  } else if (call.actor != nullptr) {
    const auto actor
      = std::ranges::find(actors_, call.actor, &detail::UserActor::factory);
    if (actor == actors_.end())
      kit_mistake(call, "the App has no spawnable for its actor");
    const auto section = sections_.find(actor->section);
    run_actor(*actor, section == sections_.end() ? std::any{} : section->second,
              call, engine, samples);
  } else if (call.function) {
    actors::for_each_unit(call.kind, samples, [&](std::span<Sample> unit) {
      call.function(unit, carried_);
    });
  } else if (call.kind == UserKind::generate || call.kind == UserKind::infer
             || call.kind == UserKind::reward) {
    kit_mistake(call, "needs a fake");
  }
  check_writes(call, samples);
}

std::vector<Sample> Kit::step(std::vector<Sample> samples) {
  for (const auto& call : workflow_.calls)
    run(call, samples);
  return samples;
}

} // namespace troupe::testing
