#include "actors/user/user_actors.hpp"

#include "actors/user/python_conversation.hpp"
#include "actors/user/python_leader.hpp"
#include "actors/worker_base/worker_context.hpp"
#include "plans/workflow/user_placement.hpp"

#include "troupe/actor.hpp"
#include <fmt/format.h>

namespace troupe::actors {

namespace {

std::chrono::seconds timeout_of(const WorkerContext& worker) {
  return std::chrono::seconds(worker.run.settings.cluster.own_actor_timeout_s);
}

/// Spawns the i-th leader in Python of a call.
SampleActor spawn_leader_of(const WorkerContext& worker, const UserEntry& user,
                            std::uint32_t i, const Spawn& spawn) {
  net::LineProgramOptions process;
  process.name
    = fmt::format("{}_of_worker_{}", user.call.name, worker.worker.value);
  if (i > 0)
    process.name += fmt::format("_instance_{}", i + 1);
  process.argv = python_conversation_command(user);
  process.log_folder = worker.run.folder / "logs";
  process.deadline
    = {.silence = timeout_of(worker), .setting = "cluster.own_actor_timeout_s"};
  process.ready_line = python_conversation_ready;
  return spawn_python_leader(spawn.system, {.entry = &user,
                                            .row = spawn.row,
                                            .model = spawn.model,
                                            .process = std::move(process)});
}

} // namespace

UserActorPool::UserActorPool(caf::actor_system& system, DispatcherSetup setup,
                             detail::ModelActor model)
  : instances_(setup.instances),
    model_(std::move(model)),
    waiting_(setup.waiting),
    dispatcher_(system.spawn(sample_dispatcher, std::move(setup))) {}

UserActorPool::~UserActorPool() {
  for (const auto& actor : instances_)
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  if (model_)
    caf::anon_send_exit(model_, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(dispatcher_, caf::exit_reason::user_shutdown);
}

void UserActorPool::run(SampleRun run) const {
  caf::anon_send(dispatcher_, start_atom::value, waiting_->put(std::move(run)));
}

std::shared_ptr<const UserActorPool> UserActors::pool(WorkerContext& worker,
                                                      const UserEntry& user) {
  const std::lock_guard lock{mutex_};
  Made& made = made_[user.call.name];
  if (!made.pool)
    made.pool = make(worker, user, made);
  return made.pool;
}

OpenConversations& UserActors::conversations(const UserEntry& user) {
  const std::lock_guard lock{mutex_};
  return *made_[user.call.name].conversations;
}

std::shared_ptr<const UserActorPool> UserActors::make(WorkerContext& worker,
                                                      const UserEntry& user,
                                                      const Made& made) {
  static const std::any none;
  const auto& sections = worker.run.settings.user;
  const auto section = sections.find(user.actor.section);
  detail::ModelActor model;
  if (user.call.kind == detail::UserKind::generate)
    model = system_->spawn(model_actor,
                           std::make_shared<const ModelSetup>(
                             ModelSetup{.call = user.call.name,
                                        .tokenizer = worker.data.tokenizer(),
                                        .incarnation = worker.incarnation,
                                        .conversations = made.conversations}));
  const auto count = plans::instances_on(
    worker.run.plan.cluster, worker.run.plan.calls.at(user.call.name),
    worker.worker);
  std::vector<SampleActor> instances;
  for (std::uint32_t i = 0; i < count; ++i) {
    Spawn spawn{.system = *system_,
                .section = section == sections.end() ? none : section->second,
                .row = i == 0 ? user.actor.name
                              : fmt::format("{} {}", user.actor.name, i + 1),
                .model = model};
    if (user.python)
      spawn.actor = spawn_leader_of(worker, user, i, spawn);
    else
      user.actor.spawner(spawn);
    instances.push_back(spawn.actor);
  }
  return std::make_shared<const UserActorPool>(
    *system_,
    DispatcherSetup{
      .name = "samples of " + user.call.name,
      .instances = std::move(instances),
      .timeout = timeout_of(worker),
      .model_is_asked
      = [talks = made.conversations] { return talks->turns_are_open(); },
      .on_progress = [progress = progress_] { ++*progress; }},
    model);
}

void UserActors::end() {
  python_.stop();
  const std::lock_guard lock{mutex_};
  made_.clear();
}

} // namespace troupe::actors
