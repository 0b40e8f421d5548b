// The own actors of one worker, by call: made at the first use, as many of each
// as the plan says. Samples are dealt to the instances by their ids.
// Parent: the function actor, whose end is theirs (end()).
#pragma once

#include "actors/model_actor.hpp"
#include "actors/own_calls.hpp"
#include "actors/sample_dealer.hpp"

namespace troupe::actors {

struct WorkerContext;

/// All that carries out one call.
class OwnCrew {
public:
  /// `model` is theirs where they lead conversations, else null.
  OwnCrew(caf::actor_system& system, DealerSetup setup,
          detail::ModelActor model);
  ~OwnCrew();
  OwnCrew(const OwnCrew&) = delete;
  OwnCrew& operator=(const OwnCrew&) = delete;

  /// Sends each sample to its instance. Callable from any thread; so is
  /// run.done called.
  void run(SampleRun run) const;

private:
  std::vector<SampleActor> instances_;
  detail::ModelActor model_;
  std::shared_ptr<WaitingRuns> waiting_;
  SampleDealer dealer_;
};

class OwnActors {
public:
  explicit OwnActors(caf::actor_system& system) : system_(&system) {}

  /// Of the call, which evaluations share with training. Thread-safe.
  std::shared_ptr<const OwnCrew> crew(WorkerContext& worker,
                                      const OwnEntry& own);
  /// The conversations that are under way, of a call that has some.
  OpenConversations& conversations(const OwnEntry& own);
  /// Samples that came back; progress of the worker, as a device's is.
  std::uint64_t progress() const {
    return *progress_;
  }
  void end();

private:
  struct Made {
    std::shared_ptr<const OwnCrew> crew;
    std::shared_ptr<OpenConversations> conversations
      = std::make_shared<OpenConversations>();
  };
  std::shared_ptr<const OwnCrew> make(WorkerContext& worker,
                                      const OwnEntry& own, const Made& made);

  caf::actor_system* system_;
  std::shared_ptr<std::atomic<std::uint64_t>> progress_
    = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::mutex mutex_;
  std::map<std::string, Made> made_;
};

} // namespace troupe::actors
