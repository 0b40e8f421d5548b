#include "actors/own_actors.hpp"

#include "actors/worker_context.hpp"
#include "plans/own_placement.hpp"

#include "troupe/actor.hpp"
#include <fmt/format.h>

namespace troupe::actors {

OwnCrew::OwnCrew(caf::actor_system& system, DealerSetup setup,
                 detail::ModelActor model)
  : instances_(setup.instances),
    model_(std::move(model)),
    waiting_(setup.waiting),
    dealer_(system.spawn(sample_dealer, std::move(setup))) {}

OwnCrew::~OwnCrew() {
  for (const auto& actor : instances_)
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  if (model_)
    caf::anon_send_exit(model_, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(dealer_, caf::exit_reason::user_shutdown);
}

void OwnCrew::run(SampleRun run) const {
  caf::anon_send(dealer_, start_atom::value, waiting_->put(std::move(run)));
}

std::shared_ptr<const OwnCrew> OwnActors::crew(WorkerContext& worker,
                                               const OwnEntry& own) {
  const std::lock_guard lock{mutex_};
  Made& made = made_[own.call.name];
  if (!made.crew)
    made.crew = make(worker, own, made);
  return made.crew;
}

OpenConversations& OwnActors::conversations(const OwnEntry& own) {
  const std::lock_guard lock{mutex_};
  return *made_[own.call.name].conversations;
}

std::shared_ptr<const OwnCrew>
OwnActors::make(WorkerContext& worker, const OwnEntry& own, const Made& made) {
  static const std::any none;
  const auto& sections = worker.settings.own;
  const auto section = sections.find(own.actor.section);
  detail::ModelActor model;
  if (own.call.kind == detail::OwnKind::generate)
    model = system_->spawn(model_actor,
                           std::make_shared<const ModelSetup>(
                             ModelSetup{.call = own.call.name,
                                        .tokenizer = worker.tokenizer(),
                                        .incarnation = worker.incarnation,
                                        .conversations = made.conversations}));
  const auto count = plans::instances_on(
    worker.plan.cluster, worker.plan.calls.at(own.call.name), worker.worker);
  std::vector<SampleActor> instances;
  for (std::uint32_t i = 0; i < count; ++i) {
    Spawn spawn{.system = *system_,
                .section = section == sections.end() ? none : section->second,
                .row = i == 0 ? own.actor.name
                              : fmt::format("{} {}", own.actor.name, i + 1),
                .model = model};
    own.actor.spawner(spawn);
    instances.push_back(spawn.actor);
  }
  return std::make_shared<const OwnCrew>(
    *system_,
    DealerSetup{
      .name = "samples of " + own.call.name,
      .instances = std::move(instances),
      .timeout
      = std::chrono::seconds(worker.settings.cluster.own_actor_timeout_s),
      .model_is_asked
      = [talks = made.conversations] { return talks->turns_are_open(); },
      .on_progress = [progress = progress_] { ++*progress; }},
    model);
}

void OwnActors::end() {
  const std::lock_guard lock{mutex_};
  made_.clear();
}

} // namespace troupe::actors
