#include "actors/worker/node_actor.hpp"

#include "actors/agents/agent_host_actor.hpp"
#include "actors/protocol/resident_memory.hpp"
#include "actors/user/reward_work.hpp"
#include "actors/user/user_actors.hpp"
#include "actors/worker/function_actor.hpp"
#include "actors/worker/local_mesh_actor.hpp"
#include "actors/worker/master_files.hpp"
#include "actors/worker/shard_actor.hpp"
#include "actors/worker/shard_snapshot.hpp"
#include "actors/worker_base/call_options.hpp"
#include "actors/worker_base/open_files.hpp"
#include "config/base/log.hpp"
#include "net/base/open_files.hpp"
#include "net/child_programs/child_start.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

using NodeSelf = Self<NodeActor, NodeState>;

void end_node(NodeSelf self, std::optional<Failure> failure) {
  if (!std::exchange(self->state.ended, true))
    self->state.setup->on_end(std::move(failure));
}

/// Ends this process: the master is lost or does not accept it.
void master_lost(NodeSelf self, const std::string& what) {
  end_node(self, Failure{.code = Errc::peer_lost,
                         .who = "master",
                         .what = what,
                         .cause = ""});
}

void joined(NodeSelf self, const JoinReply& join_reply) {
  try {
    auto worker = make_worker_context(join_reply);
    self->state.setup->files = worker->run.files;
    net::let_variables_through(worker->run.settings.cluster.env);
    check_open_files(open_files_needed(worker->run.workflow, worker->run.plan),
                     worker->run.plan.cluster.num_workers(),
                     net::open_file_limit());
    if (self->state.setup->keeps_log) {
      log::open(worker->run.folder / "logs"
                  / fmt::format("worker_{:02}.log", worker->worker.value),
                log::Level::info);
      log::runtime.info(worker->who + " joined, started by hand");
    }
    if (worker->run.settings.trace.enabled)
      trace::start(
        worker->run.folder / "trace"
          / fmt::format("worker_{:02}_{:02}.events", worker->worker.value,
                        worker->incarnation.value),
        fmt::format("worker {}", worker->worker.value),
        worker->worker.value + 1,
        trace_bytes_of_worker(worker->run.settings, worker->run.plan.cluster));
    worker->exchange.data_plane = std::move(self->state.setup->data);
    worker->exchange.data_plane->begin(join_reply.incarnation);
    worker->exchange.data_plane->serve_rows(worker->exchange.stash);
    worker->exchange.groups.use(*worker->exchange.data_plane);
    if (const auto limit_s = worker->run.settings.cluster.silence_s)
      self->state.silence_limit = std::chrono::seconds(*limit_s);
    self->state.worker = std::move(worker);
  } catch (const std::exception& error) {
    end_node(self, to_failure(error, "worker"));
  }
}

/// Starts the keeper of the host too, so that no snapshot waits for it.
void start_keeper(WorkerContext& worker) {
  if (worker.worker.value % worker.run.plan.cluster.workers_per_node == 0)
    worker.threads.snapshots->post(
      [snapshots = worker.snapshots.get()] { snapshots->start_keeper(); });
}

void start_threads(WorkerContext& worker) {
  worker.threads.host
    = std::make_unique<JobThread>(fmt::format("host {}", worker.worker.value));
  worker.threads.writer = std::make_unique<JobThread>(
    fmt::format("writer {}", worker.worker.value));
  if (worker.snapshots)
    worker.threads.snapshots = std::make_unique<JobThread>(
      fmt::format("snapshots {}", worker.worker.value));
  for (const Rank rank : worker.run.plan.cluster.devices_of(worker.worker)) {
    worker.threads.devices[rank]
      = std::make_unique<JobThread>(fmt::format("device {}", rank.value));
    worker.threads.workspaces.try_emplace(rank);
    worker.threads.shards.try_emplace(rank);
  }
}

/// Spawns what this worker has of a replica, if anything.
void spawn_local_mesh(NodeSelf self, const plans::Replica& replica,
                      SetupDone& done) {
  const auto& worker = self->state.worker;
  LocalMeshSetup local_mesh{.replica = replica.name(),
                            .worker = worker->worker,
                            .ranks = {},
                            .shards = {},
                            .asks = self->state.actors.asks};
  for (const Rank rank : replica.devices) {
    if (!worker->threads.devices.contains(rank))
      continue;
    local_mesh.ranks.push_back(rank);
    local_mesh.shards.push_back(self->home_system().spawn(
      shard_actor, ShardSetup{worker, replica.id, rank}));
    if (rank == replica.devices.front())
      done.writers.push_back({replica.id, local_mesh.shards.back()});
  }
  if (local_mesh.ranks.empty())
    return;
  auto& shards = self->state.actors.shards;
  shards.insert(shards.end(), local_mesh.shards.begin(),
                local_mesh.shards.end());
  const auto actor = self->home_system().spawn(local_mesh_actor, local_mesh);
  self->state.actors.local_meshes.push_back(actor);
  done.local_meshes.push_back({replica.id, local_mesh.ranks, actor});
}

/// Connects with the master, whose files this host does not share.
void connect_files(NodeSelf self) {
  const auto& setup = *self->state.setup;
  auto& worker = *self->state.worker;
  worker.run.files->connect(std::make_unique<MasterFiles>(
    self->home_system(), *worker.exchange.data_plane,
    MasterFilesSetup{.master = worker.run.files->master(),
                     .master_host = setup.master_host,
                     .self = {.worker = worker.worker,
                              .host = setup.join.host,
                              .data_port = setup.join.data_port},
                     .incarnation = worker.incarnation,
                     .asks = self->state.actors.asks}));
}

caf::result<SetupDone> setup_run(NodeSelf self, const Context& context,
                                 const SetupOrder& order) {
  Reply<SetupDone> reply{self, context};
  auto& worker = self->state.worker;
  for (const auto& peer : order.peers) {
    worker->exchange.hosts[peer.worker] = {peer.host, peer.gpus};
    if (peer.worker != worker->worker)
      worker->exchange.data_plane->set_peer(peer.worker, peer.host,
                                            peer.data_port);
  }
  if (!worker->run.files->is_shared())
    connect_files(self);
  start_threads(*worker);
  worker->user = std::make_shared<UserActors>(self->home_system());
  if (has_rewards(worker->run.workflow))
    worker->rewards = std::make_shared<RewardWork>(*worker);
  self->state.actors.agents = make_agents(
    self->home_system(), *worker, order.agents, self->state.actors.asks);
  SetupDone done;
  done.shares_files = worker->run.files->is_shared();
  for (const auto& replica : worker->run.replicas.all)
    spawn_local_mesh(self, replica, done);
  self->state.actors.function
    = self->home_system().spawn(function_actor, worker);
  done.function = self->state.actors.function;
  if (worker->snapshots && order.snapshot.id != 0)
    run_job<SetupDone>(*worker->threads.snapshots,
                       fmt::format("{}, lend snapshots", worker->who),
                       self->state.open.open(self, reply),
                       [worker, done, key = order.snapshot] {
                         lend_snapshots(*worker, key);
                         return done;
                       });
  else
    reply.deliver(std::move(done));
  if (worker->snapshots)
    start_keeper(*worker);
  return reply.promise();
}

caf::result<CommitDone> commit(NodeSelf self, const Context& context,
                               const CommitOrder& order) {
  Reply<CommitDone> reply{self, context};
  auto& stash = self->state.worker->exchange.stash;
  const auto before = stash.size_bytes();
  stash.drop(order.step);
  reply.deliver({before - std::min(before, stash.size_bytes())});
  return reply.promise();
}

// -- rows of steps that a checkpoint finds unfinished ------------------------

caf::result<CopyDone> copy_rows(NodeSelf self, const Context& context,
                                const CopyRowsOrder& order) {
  Reply<CopyDone> reply{self, context};
  auto worker = self->state.worker;
  auto copied = std::make_shared<std::vector<models::StepRows>>();
  // the writer is idle: there is one save at a time
  run_job<CopyDone>(
    *worker->threads.writer, fmt::format("{}, copy rows", worker->who),
    self->state.open.open<NodeSelf, CopyDone>(
      self, reply,
      [self, copied](CopyDone&) { self->state.copied = std::move(*copied); }),
    [=] {
      CopyDone done;
      for (const auto& set : order.sets) {
        copied->push_back({set.step, worker->exchange.stash.get(
                                       set.step, set.keys, set.samples)});
        done.bytes += copied->back().rows.size_bytes();
      }
      return done;
    });
  return reply.promise();
}

caf::result<WriteDone> write_rows(NodeSelf self, const Context& context,
                                  const WriteRowsOrder& order) {
  Reply<WriteDone> reply{self, context};
  auto& worker = *self->state.worker;
  run_job<WriteDone>(
    *worker.threads.writer, fmt::format("{}, write rows", worker.who),
    self->state.open.open(self, reply),
    [rows = std::exchange(self->state.copied, {}), file = order.file,
     files = worker.run.files] {
      return written_by(*files, [&] {
        return models::write_row_file(files->to_write(file), rows);
      });
    });
  return reply.promise();
}

LoadDone load_files(WorkerContext& worker, const LoadRowsOrder& order) {
  LoadDone done;
  for (const auto& file : order.files)
    for (auto& [step, rows] :
         models::read_row_file(worker.run.files->local(file))) {
      done.bytes += rows.size_bytes();
      worker.exchange.stash.put(step, std::move(rows));
    }
  return done;
}

caf::result<LoadDone> load_rows(NodeSelf self, const Context& context,
                                const LoadRowsOrder& order) {
  Reply<LoadDone> reply{self, context};
  auto worker = self->state.worker;
  run_job<LoadDone>(*worker->threads.host,
                    fmt::format("{}, load rows", worker->who),
                    self->state.open.open(self, reply),
                    [=] { return load_files(*worker, order); });
  return reply.promise();
}

caf::result<SnapshotDone> copy_planes(NodeSelf self, const Context& context,
                                      const SnapshotCopyOrder& order) {
  Reply<SnapshotDone> reply{self, context};
  auto worker = self->state.worker;
  run_job<SnapshotDone>(
    *worker->threads.snapshots, fmt::format("{}, copy snapshots", worker->who),
    self->state.open.open(self, reply),
    [=, step = context.step] { return copy_snapshots(*worker, step, order); });
  return reply.promise();
}

// -- heartbeats and the end --------------------------------------------------

caf::result<HeartbeatReply> reply(NodeSelf self, const Context& context) {
  self->state.master_heard = self->clock().now();
  Reply<HeartbeatReply> promised{self, context};
  HeartbeatReply reply;
  if (const auto& worker = self->state.worker) { // otherwise it has only joined
    for (const auto& [rank, device] : worker->threads.devices) {
      reply.devices.push_back(rank);
      reply.progress.push_back(device->progress());
    }
    if (worker->threads.host)
      reply.progress.push_back(worker->threads.host->progress());
    if (worker->user)
      reply.progress.push_back(worker->user->progress());
    reply.progress.push_back(worker->data.progress());
    reply.progress.push_back(worker->run.files->progress());
    reply.reading = worker->data.reading();
    reply.stash_bytes = worker->exchange.stash.size_bytes();
  }
  reply.memory_bytes = resident_bytes();
  reply.dropped_events = trace::dropped();
  promised.deliver(std::move(reply));
  return promised.promise();
}

/// Stops all work and waits here: some part of the run has failed.
void abort_work(NodeSelf self, const Failure& failure) {
  if (!self->state.worker)
    return;
  auto& worker = *self->state.worker;
  worker.exchange.groups.abort_all(failure);
  worker.exchange.data_plane->abort(failure);
  worker.run.files->abort();
  worker.threads.host->abort();
  worker.threads.writer->abort();
  if (worker.threads.snapshots)
    worker.threads.snapshots->abort();
  if (worker.rewards)
    worker.rewards->abort();
  for (auto& [rank, device] : worker.threads.devices)
    device->abort();
  self->state.actors.asks->fail_all(failure);
}

void tick(NodeSelf self) {
  auto& state = self->state;
  const auto now = self->clock().now();
  // after a stop of this process (SIGSTOP, a suspended job), what the master
  // has sent meanwhile comes first
  if (now - std::exchange(state.last_tick, now) >= defaults::suspect_after)
    state.master_heard = now;
  const auto silence = now - state.master_heard;
  if (silence > state.silence_limit)
    return master_lost(
      self, fmt::format("the master has been silent for {:.0f} s",
                        std::chrono::duration<double>(silence).count()));
  if (const auto full = state.open_files.look("worker"))
    return end_node(self, *full);
  self->delayed_send(self, defaults::heartbeat_period, tick_atom::value);
}

/// Ends the process in order. What snapshots hold is in the last checkpoint
/// too, or was not to be kept. The master may still pull the ends of logs and
/// traces.
void stop(NodeSelf self) {
  if (const auto& worker = self->state.worker; worker && worker->snapshots) {
    worker->exchange.data_plane->abort_pulls({.code = Errc::aborted,
                                              .who = worker->who,
                                              .what = "the run has ended",
                                              .cause = ""});
    worker->snapshots->end();
  }
  for (const auto& shard : self->state.actors.shards)
    self->send_exit(shard, caf::exit_reason::user_shutdown);
  for (const auto& local_mesh : self->state.actors.local_meshes)
    self->send_exit(local_mesh, caf::exit_reason::user_shutdown);
  if (self->state.actors.function)
    self->send_exit(self->state.actors.function,
                    caf::exit_reason::user_shutdown);
  if (const auto& agents = self->state.actors.agents)
    self->send_exit(agents, caf::exit_reason::user_shutdown);
  end_node(self, std::nullopt);
}

void join_run(NodeSelf self) {
  const auto& setup = *self->state.setup;
  self->monitor(setup.join_actor);
  self->set_down_handler([=](const caf::down_msg&) {
    master_lost(self, "the connection to the master closed");
  });
  self
    ->request(setup.join_actor, caf::infinite, join_atom::value, setup.join,
              NodeActor{self})
    .then([=](JoinAccepted& reply) { joined(self, reply.join_reply); },
          [=](caf::error& error) { end_node(self, to_failure(error)); });
}

} // namespace

NodeActor::behavior_type node_actor(NodeSelf self,
                                    std::shared_ptr<NodeSetup> setup) {
  self->state.setup = std::move(setup);
  self->state.master_heard = self->state.last_tick = self->clock().now();
  join_run(self);
  self->delayed_send(self, defaults::heartbeat_period, tick_atom::value);
  return {
    [=](setup_atom, const Context& context, const SetupOrder& order) {
      return setup_run(self, context, order);
    },
    [=](commit_atom, const Context& context, const CommitOrder& order) {
      return commit(self, context, order);
    },
    [=](copy_atom, const Context& context, const CopyRowsOrder& order) {
      return copy_rows(self, context, order);
    },
    [=](write_atom, const Context& context, const WriteRowsOrder& order) {
      return write_rows(self, context, order);
    },
    [=](load_atom, const Context& context, const LoadRowsOrder& order) {
      return load_rows(self, context, order);
    },
    [=](snapshot_atom, const Context& context, const SnapshotCopyOrder& order) {
      return copy_planes(self, context, order);
    },
    [=](ping_atom, const Context& context, const PingOrder&) {
      return reply(self, context);
    },
    [=](abort_atom, const FailureMessage& message) {
      abort_work(self, to_failure(message));
    },
    [=](stop_atom) { stop(self); },
    [=](tick_atom) { tick(self); },
    [=](done_atom, std::uint64_t id) { self->state.open.finish(id); },
  };
}

} // namespace troupe::actors
