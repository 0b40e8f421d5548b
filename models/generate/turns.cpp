#include "models/generate/turns.hpp"

#include <utility>

namespace troupe::models {

void TurnQueue::ask(Turn turn, Done done) {
  std::optional<Failure> refused;
  {
    const std::lock_guard lock(mutex_);
    refused = failure_;
    if (!refused && under_way_.contains(turn.sample))
      refused = Failure{.code = Errc::bad_input,
                        .who = "generation",
                        .what = "sample " + to_string(turn.sample)
                                + " is asked for a turn during a turn",
                        .cause = ""};
    if (!refused) {
      under_way_.emplace(turn.sample, std::move(done));
      asked_.push_back(std::move(turn));
      arrived();
    }
  }
  if (refused)
    done(*refused);
}

void TurnQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  arrived();
}

void TurnQueue::listen(std::function<void()> on_arrival) {
  const std::lock_guard lock(mutex_);
  on_arrival_ = std::move(on_arrival);
}

void TurnQueue::arrived() {
  came_.notify_one();
  if (on_arrival_)
    on_arrival_();
}

void TurnQueue::fail(const Failure& failure) {
  std::map<SampleId, Done> left;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_)
      failure_ = failure;
    left = std::exchange(under_way_, {});
    arrived();
  }
  for (const auto& [sample, done] : left)
    done(failure);
}

TurnQueue::Intake TurnQueue::take(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  came_.wait_for(lock, most,
                 [&] { return !asked_.empty() || closed_ || failure_; });
  if (failure_)
    throw FailureError{*failure_};
  return {.turns = std::exchange(asked_, {}), .closed = closed_};
}

void TurnQueue::end(SampleId sample, TurnEnd end) {
  done_of(sample)(std::move(end));
}

TurnQueue::Done TurnQueue::done_of(SampleId sample) {
  const std::lock_guard lock(mutex_);
  if (failure_)
    throw FailureError{*failure_};
  auto found = under_way_.extract(sample);
  TROUPE_CHECK(!found.empty(), "a turn ends that was asked for");
  return std::move(found.mapped());
}

} // namespace troupe::models
