// The model as an awaitable actor. A user-defined actor whose factory takes a
// Model leads the conversation of each sample of its call (Workflow::converse):
// a plain loop of turns, in a coroutine or with then().
//
//   Task<Sample> solve(Self self, Model model, Sample sample) {
//     sample = co_await model.extend(std::move(sample));
//     sample.append(answer_to(sample[keys::turn]));   // loss_mask 0
//     sample = co_await model.extend(std::move(sample));
//     co_return sample.set(reward, ...);
//   }
//
// All samples of the step run concurrently, and their turns are batched in the
// model. Between its turns a sample's tokens stay in the KV cache while there
// is room; otherwise they are prefilled again.
//
// Where the call has other roles beside its own (with("opponent")),
// `co_await model("opponent").extend(sample)` is a turn of such a role: its
// tokens have loss_mask 0, and keys::response does not have them.
#pragma once

#include "troupe/future.hpp"
#include "troupe/sample.hpp"

namespace troupe {

struct TurnOptions {
  /// Maximum number of tokens of this turn; 0: as many as
  /// rollout.max_new_tokens leaves, which bounds all turns and appended texts
  /// of a sample together.
  std::uint32_t max_tokens = 0;
};

class Model {
public:
  /// Asks a role, the call's own if it has no name.
  using Extend = std::function<Future<Sample>(Sample, TurnOptions,
                                              const std::string& role)>;
  explicit Model(Extend extend) : extend_(std::move(extend)) {}

  /// Returns another role of the conversation, or the call's own. A role that
  /// the call does not have fails the turn.
  Model operator()(std::string role) const {
    Model other = *this;
    other.role_ = std::move(role);
    return other;
  }

  /// Returns the sample with the model's next turn, which ends at an end token,
  /// a text of rollout.stop or a length limit. Sets keys::turn to the text of
  /// the turn and keys::response to the text of all turns; keys::truncated is 1
  /// if the turn was cut or had no room left to begin. A sample has at most one
  /// turn in progress.
  Future<Sample> extend(Sample sample, TurnOptions options = {}) const {
    return extend_(std::move(sample), options, role_);
  }

private:
  Extend extend_;
  std::string role_;
};

} // namespace troupe
