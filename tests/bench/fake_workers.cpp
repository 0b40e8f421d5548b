#include "fake_workers.hpp"

#include "actors/membership/endpoint.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/sum_parts.hpp"
#include "actors/protocol/system.hpp"
#include "actors/worker/local_mesh_actor.hpp"
#include "actors/worker_base/run_description.hpp"
#include "runtime/run_folder/build_identity.hpp"
#include "runtime/run_folder/run_secret.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <latch>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <variant>

namespace troupe::bench {
inline namespace fake_worker_parts { // named: actors' states hold them

using namespace actors;

/// State that all fake workers of the process share.
struct Crowd {
  explicit Crowd(std::ptrdiff_t num_workers) : running(num_workers) {}

  std::mutex mutex;
  std::shared_ptr<const RunDescription> run; ///< parsed once, by the first
  std::atomic<std::uint64_t> orders{0};      ///< of steps
  std::latch running;

  std::shared_ptr<const RunDescription> run_of(const JoinReply& reply) {
    const std::lock_guard lock{mutex};
    if (!run)
      run = std::make_shared<RunDescription>(describe_run(reply));
    return run;
  }
};

/// One fake worker, once it has joined.
struct FakeWorker {
  std::shared_ptr<Crowd> crowd;
  std::shared_ptr<const RunDescription> run;
  WorkerId worker;
};

/// Counts an order from the master; those of a local mesh by its first device.
template <class Done>
Done counted(const FakeWorker& worker, Done done, bool is_first = true) {
  if (is_first)
    ++worker.crowd->orders;
  return done;
}

/// Returns the reply of a device, with as many numbers as a real one.
RunDone run_done(const FakeWorker& worker, const RunOrder& order) {
  const plans::Call& call = worker.run->workflow.call(order.call);
  RunDone done;
  done.holder = worker.worker;
  if (call.kind == plans::CallKind::train) {
    models::MetricSums sums;
    for (const char* name : {"loss", "kl", "entropy", "clipped", "ratio",
                             "grad_norm", "learning_rate", "tokens"})
      sums.add(models::Sum{name, 1, 1, models::SumKind::mean});
    done.sums = to_parts(sums);
  }
  for (const auto& batch : order.batches)
    done.samples.insert(done.samples.end(), batch.begin(), batch.end());
  std::ranges::sort(done.samples);
  done.keys = call.writes;
  if (call.kind == plans::CallKind::generate)
    done.tokens.assign(done.samples.size(), 40);
  done.busy_ns = 1000;
  return done;
}

struct FakeShardState {
  std::string name = "shard";
};
ShardActor::behavior_type fake_shard(Self<ShardActor, FakeShardState>,
                                     FakeWorker worker, Rank rank,
                                     bool is_first) {
  const std::vector<PeakMemory> peaks = {{rank, 1 << 20, 1 << 20}};
  return {
    [](load_atom, const Context&, const LoadOrder&) { return LoadDone{}; },
    [=](fetch_atom, const Context&, const FetchOrder&) {
      return counted(worker, FetchDone{}, is_first);
    },
    [=](run_atom, const Context&, const RunOrder& order) {
      auto done = run_done(worker, order);
      done.peaks = peaks;
      return counted(worker, std::move(done), is_first);
    },
    [=](publish_weights_atom, const Context&, const PublishOrder&) {
      return counted(worker, PublishDone{}, is_first);
    },
    [=](move_atom, const Context&, const MoveOrder&) {
      return counted(worker, MoveDone{.bytes = 8, .peaks = peaks}, is_first);
    },
    [=](residency_atom, const Context&, const ResidencyOrder&) {
      return counted(worker, ResidencyDone{.peaks = peaks}, is_first);
    },
    [](copy_atom, const Context&, const CopyOrder&) { return CopyDone{}; },
    [](write_atom, const Context&, const WriteOrder&) { return WriteDone{}; },
    [](snapshot_atom, const Context&, const SnapshotOrder&) {
      return SnapshotDone{};
    },
    [](done_atom, std::uint64_t) {}};
}

struct FakeFunctionState {
  std::string name = "functions";
};
FunctionActor::behavior_type
fake_function(Self<FunctionActor, FakeFunctionState>, FakeWorker worker) {
  return {[=](fetch_atom, const Context&, const FetchOrder&) {
            return counted(worker, FetchDone{});
          },
          [=](run_atom, const Context&, const RunOrder& order) {
            return counted(worker, run_done(worker, order));
          },
          [](done_atom, std::uint64_t) {}};
}

struct FakeNodeState {
  std::string name = "node";
  FakeWorker worker;
  std::vector<caf::strong_actor_ptr> kept; ///< nobody else in this process does
  std::shared_ptr<AskTable> asks = std::make_shared<AskTable>();
};
using FakeNodeSelf = Self<NodeActor, FakeNodeState>;

void keep(FakeNodeSelf self, const caf::actor_addr& actor) {
  self->state.kept.push_back(caf::actor_cast<caf::strong_actor_ptr>(actor));
}

void add_local_mesh(FakeNodeSelf self, const plans::Replica& replica,
                    SetupDone& done) {
  const FakeWorker& worker = self->state.worker;
  LocalMeshSetup local_mesh{
    replica.name(), worker.worker, {}, {}, self->state.asks};
  for (const Rank rank : replica.devices) {
    if (worker.run->plan.cluster.worker_of(rank) != worker.worker)
      continue;
    local_mesh.ranks.push_back(rank);
    local_mesh.shards.push_back(self->home_system().spawn(
      fake_shard, worker, rank, local_mesh.ranks.size() == 1));
    if (rank == replica.devices.front())
      done.writers.push_back({replica.id, local_mesh.shards.back()});
  }
  if (local_mesh.ranks.empty())
    return;
  const auto actor = self->home_system().spawn(local_mesh_actor, local_mesh);
  done.local_meshes.push_back({replica.id, local_mesh.ranks, actor});
  keep(self, actor.address());
}

SetupDone set_up(FakeNodeSelf self) {
  SetupDone done;
  for (const auto& replica : self->state.worker.run->replicas.all)
    add_local_mesh(self, replica, done);
  done.function = self->home_system().spawn(fake_function, self->state.worker);
  keep(self, done.function.address());
  return done;
}

void stop(FakeNodeSelf self) {
  self->state.worker.crowd->running.count_down();
  self->quit();
}

NodeActor::behavior_type fake_node(FakeNodeSelf self,
                                   std::shared_ptr<Crowd> crowd,
                                   JoinActor join_actor, JoinRequest request) {
  self->state.worker.crowd = std::move(crowd);
  self
    ->request(join_actor, caf::infinite, join_atom::value, request,
              NodeActor{self})
    .then(
      [=](JoinAccepted& reply) {
        FakeWorker& worker = self->state.worker;
        worker.run = worker.crowd->run_of(reply.join_reply);
        worker.worker = reply.join_reply.worker;
      },
      [=](caf::error& error) {
        std::fprintf(stderr, "%s\n", to_string(to_failure(error)).c_str());
        _exit(1);
      });
  return {
    [=](setup_atom, const Context&, const SetupOrder&) { return set_up(self); },
    [=](commit_atom, const Context&, const CommitOrder&) {
      return counted(self->state.worker, CommitDone{});
    },
    [](copy_atom, const Context&, const CopyRowsOrder&) { return CopyDone{}; },
    [](write_atom, const Context&, const WriteRowsOrder&) {
      return WriteDone{};
    },
    [](load_atom, const Context&, const LoadRowsOrder&) { return LoadDone{}; },
    [](snapshot_atom, const Context&, const SnapshotCopyOrder&) {
      return SnapshotDone{};
    },
    [](ping_atom, const Context&, const PingOrder&) {
      return HeartbeatReply{};
    },
    [](abort_atom, const FailureMessage&) {},
    [=](stop_atom) { stop(self); },
    [](tick_atom) {},
    [](done_atom, std::uint64_t) {}};
}

/// An actor system with one worker.
struct WorkerSystem {
  WorkerSystem(std::uint32_t number, const runtime::RunSecret& secret)
    : config(number + 1) {
    config.set("scheduler.max-threads", std::size_t{1});
    system = std::make_unique<caf::actor_system>(config);
    endpoint = std::make_unique<Endpoint>(*system, secret.tls);
  }

  void join(const std::shared_ptr<Crowd>& crowd, const std::string& host,
            std::uint16_t port, JoinRequest request) const {
    const auto found = endpoint->find(host, port);
    const auto* join_actor = std::get_if<JoinActor>(&found);
    if (join_actor == nullptr)
      throw std::runtime_error(std::get<std::string>(found));
    system->spawn(fake_node, crowd, *join_actor, std::move(request));
  }

  SystemConfig config;
  std::unique_ptr<caf::actor_system> system;
  std::unique_ptr<Endpoint> endpoint;
};

} // namespace fake_worker_parts

int run_fake_workers(const std::vector<std::string>& arguments) {
  const std::string& host = arguments.at(0);
  const auto port = static_cast<std::uint16_t>(std::stoul(arguments.at(1)));
  const auto secret = runtime::read_run_secret(arguments.at(2));
  const auto num_workers
    = static_cast<std::uint32_t>(std::stoul(arguments.at(3)));
  const auto crowd = std::make_shared<Crowd>(num_workers);
  std::vector<std::unique_ptr<WorkerSystem>> systems;
  for (std::uint32_t i = 0; i < num_workers; ++i) {
    systems.push_back(std::make_unique<WorkerSystem>(i, secret));
    systems.back()->join(crowd, host, port,
                         {.token = secret.token,
                          .build = runtime::build_identity(),
                          .host = host,
                          .data_port = 1,
                          .pid = static_cast<std::uint32_t>(getpid()),
                          .wanted = i});
  }
  crowd->running.wait();
  std::printf("%llu\n", static_cast<unsigned long long>(crowd->orders));
  std::fflush(stdout);
  _exit(0); // without waiting for hundreds of threads
}

} // namespace troupe::bench
