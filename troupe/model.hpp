// The model as an actor that one can await. An own actor whose factory takes a
// Model leads the conversation of each sample of its call (Workflow::converse):
// a plain loop of turns, in a coroutine or with then().
//
//   Task<Sample> solve(Self self, Model model, Sample sample) {
//     sample = co_await model.extend(std::move(sample));
//     sample.append(answer_to(sample[keys::turn]));   // loss_mask 0
//     sample = co_await model.extend(std::move(sample));
//     co_return sample.set(reward, ..);
//   }
//
// All samples of the step are under way at once, and their turns go through the
// model together. What a sample has said and heard stays in the model's cache
// between its turns while there is room, and is fed again where there was none.
#pragma once

#include "troupe/future.hpp"
#include "troupe/sample.hpp"

namespace troupe {

struct TurnOptions {
  /// Most tokens of this turn; 0: as many as rollout.max_new_tokens leaves,
  /// which bounds all turns and appended texts of a sample together.
  std::uint32_t max_tokens = 0;
};

class Model {
public:
  using Extend = std::function<Future<Sample>(Sample, TurnOptions)>;
  explicit Model(Extend extend) : extend_(std::move(extend)) {}

  /// The sample with the model's next turn: an end token, a text of
  /// rollout.stop or a length limit ends it. Sets keys::turn to its text and
  /// keys::response to that of all turns; keys::truncated is 1 where the turn
  /// was cut, or had no room left to begin. One turn of a sample at a time.
  Future<Sample> extend(Sample sample, TurnOptions options = {}) const {
    return extend_(std::move(sample), options);
  }

private:
  Extend extend_;
};

} // namespace troupe
