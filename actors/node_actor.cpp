#include "actors/node_actor.hpp"

#include "actors/call_options.hpp"
#include "actors/function_actor.hpp"
#include "actors/open_files.hpp"
#include "actors/resident_memory.hpp"
#include "actors/reward_work.hpp"
#include "actors/shard_actor.hpp"
#include "config/log.hpp"
#include "net/open_files.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

using NodeSelf = Self<NodeActor, NodeState>;

void end_node(NodeSelf self, std::optional<Failure> failure) {
  if (std::exchange(self->state.ended, true))
    return;
  self->state.setup->on_end(std::move(failure));
}

/// The master is gone or does not want us: this process is over.
void master_lost(NodeSelf self, const std::string& what) {
  end_node(self, Failure{.code = Errc::peer_lost,
                         .who = "master",
                         .what = what,
                         .cause = ""});
}

void joined(NodeSelf self, const Welcome& welcome) {
  try {
    auto worker = make_worker_context(welcome);
    check_open_files(open_files_needed(worker->workflow, worker->plan),
                     worker->plan.cluster.num_workers(),
                     net::open_file_limit());
    if (self->state.setup->keeps_log) {
      log::open(worker->run_folder / "logs"
                  / fmt::format("worker_{:02}.log", worker->worker.value),
                log::Level::info);
      log::runtime.info(worker->who + " joined, started by hand");
    }
    if (worker->settings.trace.enabled)
      trace::start(
        worker->run_folder / "trace"
          / fmt::format("worker_{:02}_{:02}.events", worker->worker.value,
                        worker->incarnation.value),
        fmt::format("worker {}", worker->worker.value),
        worker->worker.value + 1,
        trace_bytes_of_worker(worker->settings, worker->plan.cluster));
    worker->data = std::move(self->state.setup->data);
    worker->data->begin(welcome.incarnation);
    worker->data->serve_rows(worker->stash);
    worker->groups.use(*worker->data);
    if (const auto limit_s = worker->settings.cluster.silence_s)
      self->state.silence_limit = std::chrono::seconds(*limit_s);
    self->state.worker = std::move(worker);
  } catch (const std::exception& error) {
    end_node(self, to_failure(error, "worker"));
  }
}

void start_threads(WorkerContext& worker) {
  worker.host = std::make_unique<DeviceThread>(
    fmt::format("host {}", worker.worker.value));
  worker.writer = std::make_unique<DeviceThread>(
    fmt::format("writer {}", worker.worker.value));
  for (const Rank rank : worker.plan.cluster.devices_of(worker.worker)) {
    worker.devices[rank]
      = std::make_unique<DeviceThread>(fmt::format("device {}", rank.value));
    worker.workspaces.try_emplace(rank);
  }
}

caf::result<SetupDone> setup_run(NodeSelf self, const Context& context,
                                 const SetupOrder& order) {
  Answer<SetupDone> answer{self, context};
  auto& worker = self->state.worker;
  for (const auto& peer : order.peers) {
    worker->hosts[peer.worker] = peer.host;
    if (peer.worker != worker->worker)
      worker->data->set_peer(peer.worker, peer.host, peer.data_port);
  }
  start_threads(*worker);
  worker->own = std::make_unique<OwnActors>(self->home_system());
  if (has_rewards(worker->workflow))
    worker->rewards = std::make_unique<RewardWork>(*worker);
  SetupDone done;
  for (const auto& replica : worker->replicas.all)
    for (const Rank rank : replica.devices) {
      if (!worker->devices.contains(rank))
        continue;
      auto shard = self->home_system().spawn(
        shard_actor, ShardSetup{worker, replica.id, rank});
      self->state.shards.push_back(shard);
      done.shards.push_back({replica.id, rank, shard});
    }
  self->state.function = self->home_system().spawn(function_actor, worker);
  done.function = self->state.function;
  answer.deliver(std::move(done));
  return answer.promise();
}

caf::result<CommitDone> commit(NodeSelf self, const Context& context,
                               const CommitOrder& order) {
  Answer<CommitDone> answer{self, context};
  auto& stash = self->state.worker->stash;
  const auto before = stash.size_bytes();
  stash.drop(order.step);
  answer.deliver({before - std::min(before, stash.size_bytes())});
  return answer.promise();
}

// -- rows of steps that a checkpoint finds unfinished ------------------------

caf::result<CopyDone> copy_rows(NodeSelf self, const Context& context,
                                const CopyRowsOrder& order) {
  Answer<CopyDone> answer{self, context};
  CopyDone done;
  auto& copied = self->state.copied;
  copied.clear();
  for (const auto& set : order.sets) {
    copied.push_back({set.step, self->state.worker->stash.get(
                                  set.step, set.keys, set.samples)});
    done.bytes += copied.back().rows.size_bytes();
  }
  answer.deliver(done);
  return answer.promise();
}

caf::result<WriteDone> write_rows(NodeSelf self, const Context& context,
                                  const WriteRowsOrder& order) {
  Answer<WriteDone> answer{self, context};
  auto& worker = *self->state.worker;
  run_job<WriteDone>(
    *worker.writer, fmt::format("{}, write rows", worker.who),
    self->state.open.open(self, answer),
    [rows = std::exchange(self->state.copied, {}), file = order.file] {
      return WriteDone{models::write_row_file(file, rows)};
    });
  return answer.promise();
}

LoadDone load_files(WorkerContext& worker, const LoadRowsOrder& order) {
  LoadDone done;
  for (const auto& file : order.files)
    for (auto& [step, rows] : models::read_row_file(file)) {
      done.bytes += rows.size_bytes();
      worker.stash.put(step, std::move(rows));
    }
  return done;
}

caf::result<LoadDone> load_rows(NodeSelf self, const Context& context,
                                const LoadRowsOrder& order) {
  Answer<LoadDone> answer{self, context};
  auto worker = self->state.worker;
  run_job<LoadDone>(*worker->host, fmt::format("{}, load rows", worker->who),
                    self->state.open.open(self, answer),
                    [=] { return load_files(*worker, order); });
  return answer.promise();
}

// -- heartbeats and the end --------------------------------------------------

caf::result<Pong> pong(NodeSelf self, const Context& context) {
  self->state.master_heard = self->clock().now();
  Answer<Pong> answer{self, context};
  Pong pong;
  if (const auto& worker = self->state.worker) { // else it just joins
    for (const auto& [rank, device] : worker->devices) {
      pong.devices.push_back(rank);
      pong.progress.push_back(device->progress());
    }
    if (worker->host)
      pong.progress.push_back(worker->host->progress());
    if (worker->own)
      pong.progress.push_back(worker->own->progress());
    pong.reading = worker->reading();
    pong.stash_bytes = worker->stash.size_bytes();
  }
  pong.memory_bytes = resident_bytes();
  pong.dropped_events = trace::dropped();
  answer.deliver(std::move(pong));
  return answer.promise();
}

/// Stops whatever runs or waits here: somebody, here or elsewhere, failed.
void abort_work(NodeSelf self, const Failure& failure) {
  if (!self->state.worker)
    return;
  auto& worker = *self->state.worker;
  worker.groups.abort_all(failure);
  worker.data->abort(failure);
  worker.host->abort();
  worker.writer->abort();
  if (worker.rewards)
    worker.rewards->abort();
  for (auto& [rank, device] : worker.devices)
    device->abort();
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

void stop(NodeSelf self) {
  for (const auto& shard : self->state.shards)
    self->send_exit(shard, caf::exit_reason::user_shutdown);
  if (self->state.function)
    self->send_exit(self->state.function, caf::exit_reason::user_shutdown);
  end_node(self, std::nullopt);
}

void join_run(NodeSelf self) {
  const auto& setup = *self->state.setup;
  self->monitor(setup.lobby);
  self->set_down_handler([=](const caf::down_msg&) {
    master_lost(self, "the connection to the master closed");
  });
  self
    ->request(setup.lobby, caf::infinite, join_atom::value, setup.join,
              NodeActor{self})
    .then([=](JoinAnswer& answer) { joined(self, answer.welcome); },
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
    [=](ping_atom, const Context& context, const PingOrder&) {
      return pong(self, context);
    },
    [=](abort_atom, const Trouble& trouble) {
      abort_work(self, to_failure(trouble));
    },
    [=](stop_atom) { stop(self); },
    [=](tick_atom) { tick(self); },
    [=](done_atom, std::uint64_t id) { self->state.open.finish(id); },
  };
}

} // namespace troupe::actors
