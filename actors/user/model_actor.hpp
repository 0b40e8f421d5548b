// The models that the conversations of one call talk to: produces the next
// turns of samples by the generators of this worker that run the call now.
// Texts are tokenized and detokenized here, off the device threads. Parent:
// UserActors; turns that are open when it ends get no reply.
#pragma once

#include "actors/protocol/open_replies.hpp"
#include "models/generate/turns.hpp"
#include "models/text/tokenizer.hpp"

#include "troupe/detail/user_instance.hpp"

#include <atomic>

namespace troupe::actors {

/// Generators of a run of the call, and whom they generate.
struct Speaking {
  std::shared_ptr<models::TurnQueue> turns;
  std::vector<std::string> roles; ///< by speaker; the call's own is the first
};

/// Maps samples to the generators that run their conversations now.
/// Thread-safe.
class OpenConversations {
public:
  void open(std::span<const SampleId> samples, Speaking speaking);
  void close(std::span<const SampleId> samples);
  /// Returns the sample's generators; null: none.
  std::shared_ptr<const Speaking> find(SampleId sample) const;

  void turn_asked() {
    ++turns_open_;
  }
  void turn_given() {
    --turns_open_;
  }
  /// Returns whether any conversation waits for a turn.
  bool turns_are_open() const {
    return turns_open_ > 0;
  }

private:
  mutable std::mutex mutex_;
  std::map<SampleId, std::shared_ptr<const Speaking>> open_;
  std::atomic<int> turns_open_{0};
};

struct ModelSetup {
  std::string call;
  models::Tokenizer tokenizer;
  Incarnation incarnation;
  std::shared_ptr<OpenConversations> conversations;
};

using TurnActor
  = caf::typed_actor<caf::replies_to<detail::extend_atom, Sample, std::uint32_t,
                                     std::string>::with<Sample>,
                     job_done>;

struct ModelState {
  std::string name;
  std::shared_ptr<const ModelSetup> setup;
  OpenReplies open;
};

TurnActor::behavior_type model_actor(Self<TurnActor, ModelState> self,
                                     std::shared_ptr<const ModelSetup> setup);

} // namespace troupe::actors
