// Deals the samples of a call to the instances of its own actor and gathers
// them: one for each call on a worker, beside the own actor's instances.
// Samples may be offered as they are made, before their call comes. Parent:
// OwnActors; samples that are away when it ends are lost.
#pragma once

#include "actors/traced.hpp"
#include "config/awake_clock.hpp"
#include "config/error.hpp"

#include "troupe/own_instance.hpp"

#include <chrono>
#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>

namespace troupe::actors {

/// Samples on their way through an own actor.
struct SampleRun {
  std::string who; ///< whose failure it is if one fails
  std::string call = {};
  StepId step = {};
  std::vector<Sample> samples = {};
  /// Each as it comes back; empty: nobody wants them before the others.
  std::function<void(const Sample&)> on_sample = {};
  /// The samples in their order, or the first failure; called once. Empty: they
  /// are offered, and the run that comes for them takes them as they are.
  std::function<void(std::variant<std::vector<Sample>, Failure>)> done = {};
  std::size_t missing = 0;
};

/// Runs that wait for the dealer. Thread-safe.
class WaitingRuns {
public:
  std::uint64_t put(SampleRun run);
  std::shared_ptr<SampleRun> take(std::uint64_t id);

private:
  std::mutex mutex_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::shared_ptr<SampleRun>> runs_;
};

using SampleDealer = caf::typed_actor<caf::reacts_to<start_atom, std::uint64_t>,
                                      caf::reacts_to<tick_atom>>;

/// A sample as its actor gave it back, or why it did not.
using CameBack = std::variant<Sample, Failure>;

struct OfferKey {
  std::string call;
  StepId step;
  std::uint32_t sample = 0;

  auto operator<=>(const OfferKey&) const = default;
};

/// A sample that was offered and that no run has come for.
struct OfferedSample {
  std::vector<Sample::Entry> entries; ///< as it went
  std::optional<CameBack> back = {};
  std::function<void(CameBack)> reader = {}; ///< who came for it meanwhile
};

/// A sample that is with its actor.
struct AwaySample {
  std::size_t instance = 0;
  std::uint32_t sample = 0;
  std::string who;
  std::function<void(CameBack)> came_back;
  bool lost = false; ///< the actor ended; its last words are on their way
};

struct DealerSetup {
  std::string name;
  std::shared_ptr<WaitingRuns> waiting = std::make_shared<WaitingRuns>();
  std::vector<SampleActor> instances;
  /// Between two samples that come back, as long as any is away.
  std::chrono::milliseconds timeout{0};
  /// Whether the actors wait for a model's turn, which is no silence of theirs.
  std::function<bool()> model_is_asked = [] { return false; };
  std::function<void()> on_progress = [] {};
};

struct DealerState {
  std::string name;
  DealerSetup setup;
  std::map<std::uint64_t, AwaySample> away; ///< in the order of their going
  std::uint64_t last_id = 0;
  std::map<std::size_t, std::string> ended; ///< instances, why
  AwakeClock::time_point heard;             ///< of the actors
  bool ticks = false;
  std::map<OfferKey, std::shared_ptr<OfferedSample>> offered;
};

SampleDealer::behavior_type sample_dealer(Self<SampleDealer, DealerState> self,
                                          DealerSetup setup);

} // namespace troupe::actors
