// Everything that one run of a call needs besides its rows: the step, the
// trace, the stop flag, the progress counter, the collectives. Engines check
// the stop flag between layers, tokens and mini-batches, so deadlines can be on
// progress.
#pragma once

#include "config/base/dtype.hpp"
#include "config/base/ids.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe::trace {
enum class Track : std::uint32_t;
} // namespace troupe::trace
namespace troupe::net {
class AllToAll;
class Channel;
class Collectives;
} // namespace troupe::net

namespace troupe::models {

/// The collectives of a shard's mesh axes; null: a single rank on that axis.
struct Groups {
  std::shared_ptr<net::Collectives> dp; ///< all that have the same weights
  /// Those of dp, neighbours, that have the same samples and other tokens.
  std::shared_ptr<net::Collectives> cp;
  std::shared_ptr<net::Collectives> tp; ///< the other parts of each tensor
  std::shared_ptr<net::Collectives> pp; ///< the other stages, first to last
  /// The neighbouring dp ranks that have a layer's experts between them, and
  /// the dp ranks that have the same ones; if dp ranks share experts.
  std::shared_ptr<net::AllToAll> experts;
  std::shared_ptr<net::Collectives> expert_copies;
  /// First and last stage only: both hold tied embeddings.
  std::shared_ptr<net::Collectives> ends;
  /// Neighbours in the pipeline ring; null without a pipeline.
  std::shared_ptr<net::Channel> previous;
  std::shared_ptr<net::Channel> next;

  /// Returns the dp ranks that hold the same parameters: all of them, or those
  /// with the same experts if `is_dealt`. Null: this one alone.
  net::Collectives* holders(bool is_dealt) const {
    return is_dealt ? expert_copies.get() : dp.get();
  }
  /// Returns whether this rank counts what all ranks of its cp group have.
  bool first_of_context() const;
  /// Sums data [count] over the cp group, if there is one: outputs of which
  /// each rank has some entries, and zeros elsewhere.
  void join_context(void* data, std::size_t count, DType dtype,
                    const char* name) const;
  /// Throws the failure of tensor peers, of the cp group or of a neighbouring
  /// stage, whose calls on streams nobody waits for: to be asked once the host
  /// has waited for the device and before it uses what came from them.
  void check() const;
  /// Meets them: throws if one has failed, or made other calls on streams.
  void meet() const;
  std::uint32_t stage() const;
  std::uint32_t stages() const;
  bool first_stage() const {
    return stage() == 0;
  }
  bool last_stage() const {
    return stage() + 1 == stages();
  }
};

struct RunContext {
  StepId step;
  std::uint64_t seed = 0; ///< of the run; generation mixes in step and sample
  trace::Track track{};
  const std::atomic<bool>* stop = nullptr;        ///< null: never stops
  std::atomic<std::uint64_t>* progress = nullptr; ///< counts, never resets
  Groups groups = {};

  bool stop_requested() const {
    return stop != nullptr && stop->load(std::memory_order_relaxed);
  }
  /// Counts one finished unit of work (a layer, a token), which moves the
  /// deadline.
  void made_progress() const {
    if (progress != nullptr)
      progress->fetch_add(1, std::memory_order_relaxed);
  }
  /// Calls made_progress; throws FailureError{aborted} if asked to stop.
  void check() const;
};

} // namespace troupe::models
