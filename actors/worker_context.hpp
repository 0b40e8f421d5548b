// What the actors of one worker process share: the run's words (settings,
// workflow, plan, replicas), the stash with its data plane, the device threads,
// the data set. Built once from the master's welcome; read-only afterwards but
// for the parts that are thread-safe by themselves.
#pragma once

#include "actors/device_thread.hpp"
#include "actors/messages.hpp"
#include "actors/own_actors.hpp"
#include "config/model_shape.hpp"
#include "config/settings.hpp"
#include "models/data_order.hpp"
#include "models/dataset.hpp"
#include "models/rollout_replay.hpp"
#include "models/tokenizer.hpp"
#include "models/workspace.hpp"
#include "net/data_plane.hpp"
#include "net/host_collectives.hpp"
#include "net/peer_memory.hpp"
#include "net/stash.hpp"
#include "plans/answer_room.hpp"
#include "plans/execution_plan.hpp"
#include "plans/replicas.hpp"
#include "plans/workflow.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace troupe::actors {

/// Weights that shards of this process lend to each other, by export number.
class LocalWeights {
public:
  void lend(std::uint64_t id, std::span<const std::byte> bytes);
  /// Empty when another process holds them.
  std::span<const std::byte> find(std::uint64_t id) const;

private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::span<const std::byte>> spans_;
};

/// The number under which a shard exports a plane (0: weights) to the data
/// plane; bit 59 is that of its place (net::place_id).
constexpr std::uint64_t export_id(ReplicaId replica, Rank rank,
                                  std::uint8_t plane = 0) {
  return std::uint64_t{plane} << 60 | std::uint64_t{replica.value} << 32
         | rank.value;
}

class RewardWork;

struct WorkerContext {
  WorkerContext();
  ~WorkerContext();

  WorkerId worker;
  Incarnation incarnation;
  std::string who;    ///< "worker 1 (pid 4711)"
  std::string run_id; ///< random; names shared memory and groups
  Settings settings;
  plans::Workflow workflow;
  plans::ExecutionPlan plan;
  plans::Replicas replicas;
  plans::AnswerRooms rooms; ///< of the calls that generate
  std::filesystem::path run_folder;
  std::string data_key; ///< of the index of data.train in the run folder
  std::map<std::string, ModelShape> shapes; ///< by role

  std::unique_ptr<models::RolloutReplay> replay; ///< run.replay, if set

  net::Stash stash;
  std::unique_ptr<net::DataPlane> data;
  net::GroupRegistry groups;
  LocalWeights weights;
  net::PeerMemory peer_memory; ///< weights of other workers of this host
  std::map<WorkerId, std::string> hosts;                 ///< of all workers
  std::map<Rank, std::unique_ptr<DeviceThread>> devices; ///< of this worker
  std::map<Rank, models::Workspaces> workspaces;         ///< of them
  std::unique_ptr<DeviceThread> host;   ///< functions and data-set reads
  std::unique_ptr<DeviceThread> writer; ///< of checkpoints
  std::unique_ptr<OwnActors> own;       ///< thread-safe
  /// Of runs whose rewards need no model, else null; thread-safe.
  std::unique_ptr<RewardWork> rewards;

  /// The data set, opened at the first use (functions may need none): by the
  /// run's index, else by a pass over all rows, which counts as progress.
  const models::Dataset& dataset();
  /// The rows of eval.data, likewise.
  const models::Dataset& evaluation();
  /// The rows of the data file that a call reads in a step, in the order of its
  /// samples: row i / samples_per_row is that of sample i.
  std::vector<std::uint32_t> data_rows(const plans::Call& call, StepId step);
  std::uint32_t data_row(const plans::Call& call, StepId step, SampleId sample);
  /// For the texts of samples.
  const models::Tokenizer& tokenizer();
  /// "reads data.train, row 5120 of 1000000" while a pass goes on, else "".
  std::string reading() const;

private:
  models::OnRows counts_rows(const char* setting);

  mutable std::mutex reading_mutex_;
  std::string reading_; ///< guarded
  std::once_flag dataset_opened_;
  std::optional<models::Dataset> dataset_;
  std::once_flag evaluation_opened_;
  std::optional<models::Dataset> evaluation_;
  std::mutex order_mutex_;
  std::optional<models::DataOrder> order_; ///< guarded
  std::once_flag tokenizer_opened_;
  std::optional<models::Tokenizer> tokenizer_;
};

/// The rows of `data.train`, tokenised for the workflow's first role.
models::Dataset open_dataset(const Settings& settings,
                             const plans::Workflow& workflow,
                             const models::DatasetOpening& opening = {});

/// The rows of `eval.data`, by the same tokenizer.
models::Dataset open_evaluation(const Settings& settings,
                                const plans::Workflow& workflow,
                                const models::DatasetOpening& opening = {});

/// Settings, workflow, plan and shapes out of a welcome; no threads yet.
/// Throws ConfigError as the master would have.
std::shared_ptr<WorkerContext> make_worker_context(const Welcome& welcome);

} // namespace troupe::actors
