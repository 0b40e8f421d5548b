// Dispatches the samples of a call to the instances of its user-defined actor
// and collects them: one per call on a worker, beside the instances. Samples
// may be offered as they are made, before their call comes.
// Parent: UserActors; samples that are away when it ends are lost.
#pragma once

#include "actors/protocol/traced.hpp"
#include "config/base/awake_clock.hpp"
#include "config/base/error.hpp"

#include "troupe/detail/user_instance.hpp"

#include <chrono>
#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>

namespace troupe::actors {

/// Samples on their way through a user-defined actor.
struct SampleRun {
  std::string who; ///< name for failures of its samples
  std::string call = {};
  StepId step = {};
  std::vector<Sample> samples = {};
  /// Called with each sample as it returns; empty: none is needed before the
  /// others.
  std::function<void(const Sample&)> on_sample = {};
  /// Called once with the samples in their order, or with the first failure.
  /// Empty: the samples are offered, and the run that comes for them takes them
  /// as they are.
  std::function<void(std::variant<std::vector<Sample>, Failure>)> done = {};
  std::size_t missing = 0;
};

/// Runs that wait for the dispatcher. Thread-safe.
class WaitingRuns {
public:
  std::uint64_t put(SampleRun run);
  std::shared_ptr<SampleRun> take(std::uint64_t id);

private:
  std::mutex mutex_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::shared_ptr<SampleRun>> runs_;
};

using SampleDispatcher
  = caf::typed_actor<caf::reacts_to<start_atom, std::uint64_t>,
                     caf::reacts_to<tick_atom>>;

/// A sample as its actor returned it, or the reason why it did not.
using CameBack = std::variant<Sample, Failure>;

struct StreamKey {
  std::string call;
  StepId step;
  std::uint32_t sample = 0;

  auto operator<=>(const StreamKey&) const = default;
};

/// A sample that was offered and that no run has requested yet.
struct OfferedSample {
  std::vector<Sample::Entry> entries; ///< contents when it was sent
  std::optional<CameBack> back = {};
  std::function<void(CameBack)> reader = {}; ///< run that has requested it
                                             ///< meanwhile
};

/// A sample that was sent to its actor.
struct AwaySample {
  std::size_t instance = 0;
  std::uint32_t sample = 0;
  std::string who;
  std::function<void(CameBack)> came_back;
  bool lost = false; ///< the actor ended; its failure message may still arrive
};

struct DispatcherSetup {
  std::string name;
  std::shared_ptr<WaitingRuns> waiting = std::make_shared<WaitingRuns>();
  std::vector<SampleActor> instances;
  /// Limit between two samples that return, as long as any is away.
  std::chrono::milliseconds timeout{0};
  /// Returns whether the actors wait for a turn of the model, which does not
  /// count as their silence.
  std::function<bool()> model_is_asked = [] { return false; };
  std::function<void()> on_progress = [] {};
};

struct DispatcherState {
  std::string name;
  DispatcherSetup setup;
  std::map<std::uint64_t, AwaySample> away; ///< in the order of sending
  std::uint64_t last_id = 0;
  std::map<std::size_t, std::string> ended; ///< instances, with the reason
  AwakeClock::time_point heard;             ///< last activity of the actors
  bool ticks = false;
  std::map<StreamKey, std::shared_ptr<OfferedSample>> offered;
};

SampleDispatcher::behavior_type
sample_dispatcher(Self<SampleDispatcher, DispatcherState> self,
                  DispatcherSetup setup);

} // namespace troupe::actors
