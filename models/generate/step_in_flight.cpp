#include "models/generate/step_in_flight.hpp"

#include <utility>

namespace troupe::models::internal {

void StepInFlight::name_tokens() {
  for (std::size_t i = 0; i < due_.size(); ++i)
    if (due_[i] != nullptr)
      due_[i]->ids.push_back(tokens_.id_in_next_pass(i));
}

std::size_t StepInFlight::drop_ended() {
  std::size_t dropped = 0;
  for (Sequence*& s : due_) {
    if (s == nullptr || !s->finished())
      continue;
    --s->fed; // as if its last token had not been fed
    s = nullptr;
    ++dropped;
  }
  return dropped;
}

StepInFlight::Finished StepInFlight::finish() {
  const StepInFlight step = std::exchange(*this, {});
  const std::vector<DrawnToken> all = step.tokens_.wait();
  Finished finished;
  for (std::size_t i = 0; i < step.due_.size(); ++i) {
    Sequence* const s = step.due_[i];
    if (s == nullptr)
      continue;
    TROUPE_CHECK(s->ids.back() == step.tokens_.id_in_next_pass(i),
                 "a sequence in flight ends with the name of its token");
    s->ids.pop_back();
    finished.due.push_back(s);
    finished.tokens.push_back(all.at(i));
  }
  return finished;
}

} // namespace troupe::models::internal
