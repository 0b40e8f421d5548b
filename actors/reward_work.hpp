// The function `rewards` on a worker: finished answers with their rows of the
// data set go to the run's Rewarder. It may wait long for programs and servers,
// so it has a thread of its own.
// Owner: the function actor; an aborted worker ends the wait.
#pragma once

#include "actors/worker_context.hpp"
#include "models/data_order.hpp"
#include "models/functions.hpp"
#include "models/reward_items.hpp"

namespace troupe::actors {

inline constexpr std::string_view rewards_fn = "rewards";

class RewardWork {
public:
  explicit RewardWork(WorkerContext& worker);

  /// Where `run` is to be called.
  DeviceThread& thread() {
    return thread_;
  }
  /// Opens the data set and starts programs when it is first called.
  models::FunctionResult run(const plans::Call& call, StepId step,
                             const net::Rows& rows);

private:
  models::AnswerSource source(const plans::Call& call, StepId step);

  WorkerContext& worker_;
  std::optional<models::DataOrder> order_;
  std::unique_ptr<models::Rewarder> rewarder_;
  DeviceThread thread_; ///< last: its job uses the others
};

} // namespace troupe::actors
