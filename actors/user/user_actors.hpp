// The user-defined actors of one worker, by call: created at the first use, as
// many of each as the plan has. Samples are distributed over the instances by
// their ids. Parent: the function actor; they end with it (end()).
#pragma once

#include "actors/user/device_losses.hpp"
#include "actors/user/model_actor.hpp"
#include "actors/user/python_functions.hpp"
#include "actors/user/sample_dispatcher.hpp"
#include "actors/worker_base/user_calls.hpp"

namespace troupe::actors {

struct WorkerContext;

/// The actors that carry out one call.
class UserActorPool {
public:
  /// `model` is set if they lead conversations, else null.
  UserActorPool(caf::actor_system& system, DispatcherSetup setup,
                detail::ModelActor model);
  ~UserActorPool();
  UserActorPool(const UserActorPool&) = delete;
  UserActorPool& operator=(const UserActorPool&) = delete;

  /// Sends each sample to its instance. Callable from any thread; run.done may
  /// be called on any thread too.
  void run(SampleRun run) const;

private:
  std::vector<SampleActor> instances_;
  detail::ModelActor model_;
  std::shared_ptr<WaitingRuns> waiting_;
  SampleDispatcher dispatcher_;
};

class UserActors {
public:
  explicit UserActors(caf::actor_system& system) : system_(&system) {}

  /// Returns the pool of the call, which evaluations share with training.
  /// Thread-safe.
  std::shared_ptr<const UserActorPool> pool(WorkerContext& worker,
                                            const UserEntry& user);
  /// Returns the open conversations of a call that leads some.
  OpenConversations& conversations(const UserEntry& user);
  /// Returns the number of samples that have returned; it counts as progress of
  /// the worker, as a device's does.
  std::uint64_t progress() const {
    return *progress_;
  }
  /// Returns the processes of Python functions, for the host thread.
  PythonFunctions& python() {
    return python_;
  }
  /// Returns the losses in Python, for device threads.
  DeviceLosses& losses() {
    return losses_;
  }
  void end();

private:
  struct Made {
    std::shared_ptr<const UserActorPool> pool;
    std::shared_ptr<OpenConversations> conversations
      = std::make_shared<OpenConversations>();
  };
  std::shared_ptr<const UserActorPool>
  make(WorkerContext& worker, const UserEntry& user, const Made& made);

  caf::actor_system* system_;
  std::shared_ptr<std::atomic<std::uint64_t>> progress_
    = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::mutex mutex_;
  std::map<std::string, Made> made_;
  PythonFunctions python_;
  DeviceLosses losses_;
};

} // namespace troupe::actors
