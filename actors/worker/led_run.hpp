// One run of a call whose samples others lead, actors or programs from outside,
// and who answers the turns that they ask for: the running batch of our own
// generator, with those of second roles (Call::by.with), or the server that
// generates instead (`rollout.engine`). What leads them, and what becomes of
// the answers, is the same code for all.
#pragma once

#include "actors/worker/shard_actor.hpp"

namespace troupe::models {
class TurnQueue;
struct GenerateOptions;
} // namespace troupe::models

namespace troupe::actors {

struct LedRun {
  const plans::Call& call;
  const net::Rows& rows; ///< by the key names of the call's function
  const models::GenerateOptions& options;
  models::RunContext& context;
  Version version; ///< of the weights
  /// Gets the rows of each sample as it ends, on another thread; may be empty.
  std::function<void(const net::Rows&)> on_ended;
};

/// Returns the roles that speak in the call's conversations, its own first.
std::vector<std::string> speaking_roles(const plans::Call& call);
/// Returns whether conversations are led on this device. The others of its dp
/// replica only take part in the forward passes.
bool has_leaders(const Shard& shard, const LedRun& run);
/// Makes ready what answers turns, before anyone who waits for them counts the
/// time: a server is started and gets its weights.
void make_ready(Shard& shard, const LedRun& run);
/// Answers turns of samples that begin with `prompts` until the queue is
/// closed; null where no conversations are led. Speaker 0 is the call's role,
/// then come its second roles. Throws FailureError.
void answer_turns(Shard& shard, const LedRun& run, const net::Rows& prompts,
                  const models::GenerateOptions& options,
                  models::TurnQueue* turns);

} // namespace troupe::actors
