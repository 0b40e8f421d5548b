// The function `rewards` on a worker: sends responses with their rows of the
// data set to the run's Rewarder, those of this worker's devices as soon as
// they are made, the others when the call comes. Programs and servers may take
// long, so it has a thread of its own. Thread-safe.
// Owner: the worker's context; its end, and the node's abort, end the wait.
#pragma once

#include "actors/worker_base/worker_context.hpp"
#include "models/rewards/reward_items.hpp"
#include "models/rewards/reward_queue.hpp"
#include "models/rl/functions.hpp"

namespace troupe::actors {

inline constexpr std::string_view rewards_fn = "rewards";

bool has_rewards(const plans::Workflow& workflow);

/// Returns the call's result, or throws the reason for its failure.
using GetRewards = std::function<models::FunctionResult()>;

class RewardWork {
public:
  explicit RewardWork(WorkerContext& worker);

  /// Adds responses that `call` of this worker will need scores of: their
  /// tokens, and which of them the model made.
  void offer(const plans::Call& call, StepId step, net::Rows rows);
  /// Scores the rows; `on_rewards` is called on the scorer's thread.
  void run(const plans::Call& call, StepId step, net::Rows rows,
           std::function<void(const GetRewards&)> on_rewards);

  /// Returns the track of the scorer's thread.
  trace::Track track() const {
    return thread_.track();
  }
  /// Stops all scoring.
  void abort() {
    thread_.abort();
  }

private:
  using Batch = models::RewardQueue::Batch;

  void put(Batch batch);
  void serve();
  std::vector<models::RewardItem> items(const Batch& batch);
  models::ResponseSource source(const plans::Call& call, StepId step);

  WorkerContext& worker_;
  models::RewardQueue queue_;
  JobThread thread_; ///< last: its job uses the other members
};

} // namespace troupe::actors
