// The function `rewards` on a worker: answers with their rows of the data set
// go to the run's Rewarder, those of this worker's devices as soon as they are
// made, the others when the call comes. Programs and servers may take long, so
// there is a thread of its own. Thread-safe.
// Owner: the worker's context; its end, and the node's abort, end the wait.
#pragma once

#include "actors/worker_context.hpp"
#include "models/functions.hpp"
#include "models/reward_desk.hpp"
#include "models/reward_items.hpp"

namespace troupe::actors {

inline constexpr std::string_view rewards_fn = "rewards";

bool has_rewards(const plans::Workflow& workflow);

/// Gives the call's result, or throws why there is none.
using GetRewards = std::function<models::FunctionResult()>;

class RewardWork {
public:
  explicit RewardWork(WorkerContext& worker);

  /// Answers that `call` of this worker will ask about: their tokens, and which
  /// of them are the model's.
  void offer(const plans::Call& call, StepId step, net::Rows rows);
  /// `on_rewards` is called on the scorer's thread.
  void run(const plans::Call& call, StepId step, net::Rows rows,
           std::function<void(const GetRewards&)> on_rewards);

  /// Of the scorer's thread.
  trace::Track track() const {
    return thread_.track();
  }
  /// Nothing is scored any more.
  void abort() {
    thread_.abort();
  }

private:
  using Batch = models::RewardDesk::Batch;

  void put(Batch batch);
  void serve();
  std::vector<models::RewardItem> items(const Batch& batch);
  models::AnswerSource source(const plans::Call& call, StepId step);

  WorkerContext& worker_;
  models::RewardDesk desk_;
  DeviceThread thread_; ///< last: its job uses the others
};

} // namespace troupe::actors
