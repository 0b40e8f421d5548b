// The model that the conversations of one call talk to: gives samples their
// next turns by the generators of this worker that run the call now. Texts
// become tokens and back here, off the device threads.
// Parent: OwnActors; turns that are open when it ends are not answered.
#pragma once

#include "actors/open_answers.hpp"
#include "models/tokenizer.hpp"
#include "models/turns.hpp"

#include "troupe/own_instance.hpp"

namespace troupe::actors {

/// Which generator runs which sample's conversation now. Thread-safe.
class OpenConversations {
public:
  void open(std::span<const SampleId> samples,
            const std::shared_ptr<models::TurnQueue>& turns);
  void close(std::span<const SampleId> samples);
  /// Null: none.
  std::shared_ptr<models::TurnQueue> find(SampleId sample) const;

private:
  mutable std::mutex mutex_;
  std::map<SampleId, std::shared_ptr<models::TurnQueue>> turns_;
};

struct ModelSetup {
  std::string call;
  models::Tokenizer tokenizer;
  Incarnation incarnation;
  std::shared_ptr<OpenConversations> conversations;
};

using TurnActor = caf::typed_actor<
  caf::replies_to<detail::extend_atom, Sample, std::uint32_t>::with<Sample>,
  job_done>;

struct ModelState {
  std::string name;
  std::shared_ptr<const ModelSetup> setup;
  OpenAnswers open;
};

TurnActor::behavior_type model_actor(Self<TurnActor, ModelState> self,
                                     std::shared_ptr<const ModelSetup> setup);

} // namespace troupe::actors
