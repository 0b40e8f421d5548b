// Decides how a session ends: with the first end that is reported, where a
// failure by a lost peer waits for the death that explains it. Holds what was
// requested and what is known; the session acts on it.
#pragma once

#include "actors/master/step_report.hpp"
#include "actors/protocol/ask.hpp"
#include "config/base/error.hpp"
#include "config/base/ids.hpp"
#include "runtime/launch/root_cause.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace troupe::runtime {

class SessionEnd {
public:
  using Time = RootCause::Time;

  /// `first_step` is that of the attempt.
  SessionEnd(StepId first_step, std::shared_ptr<actors::AskTable> asks);

  /// Notes that all steps before `next_step` are committed.
  void commit(StepId next_step) {
    next_step_ = next_step;
  }

  bool has_come() const {
    return end_.has_value();
  }
  const actors::RunEnd& get() const {
    return *end_;
  }
  bool has_come_as(actors::RunEnd::Kind kind) const {
    return end_ && end_->kind == kind;
  }

  /// Records the signal that requests an end.
  void ask(int signal) {
    signal_ = signal;
  }
  const std::optional<int>& signal() const {
    return signal_;
  }
  /// Ends it without waiting for a checkpoint.
  void stop_now();
  /// Ends it by a failure, unless it has ended.
  void fail(const Failure& failure);
  /// Takes an end that an actor reports. Workers may see their peer's sockets
  /// close before its death is reported here.
  void hear(const actors::RunEnd& event, Time now);

  void connection_broke(const LostWorker& lost, Time now);
  void add_death(const LostWorker& lost);
  /// Returns the first worker whose death is known.
  const std::optional<LostWorker>& first_death() const {
    return cause_.first_death();
  }
  /// Returns whether an end waits for a death that explains it.
  bool waits_for_death() const;
  /// Ends the session if no death explained a lost peer in time; returns the
  /// workers whose broken connection no exit status explained in time.
  std::vector<LostWorker> look(Time now);

private:
  StepId next_step_; ///< first one that is not committed
  std::shared_ptr<actors::AskTable> asks_;
  RootCause cause_;
  std::optional<actors::RunEnd> end_;
  std::optional<int> signal_;
};

} // namespace troupe::runtime
