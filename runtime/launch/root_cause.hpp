// Chooses the sign of a lost worker that a run ends with. A death shows as the
// exit status of the process, as its closed connection, and in peers whose
// calls fail, in any order. The exit status is the most specific, so the other
// two wait a moment for it. Pure: times are arguments.
#pragma once

#include "actors/master/step_report.hpp"
#include "config/base/error.hpp"
#include "config/base/ids.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::runtime {

struct LostWorker {
  WorkerId worker;
  Failure failure;
  bool killed = false; ///< whether a signal ended its process
};

class RootCause {
public:
  using Time = std::chrono::steady_clock::time_point;

  void connection_broke(const LostWorker& lost, Time now);
  /// Returns broken connections that no exit status explained in time.
  std::vector<LostWorker> unexplained(Time now) const;
  /// Records a lost worker whose cause is known, as well as it will be.
  void add_death(const LostWorker& lost);
  const std::optional<LostWorker>& first_death() const {
    return death_;
  }

  /// Holds back an end by a lost peer whose death was not reported yet.
  void hold(const actors::RunEnd& end, Time now);
  bool holds_end() const {
    return held_.has_value();
  }
  /// Returns the end that was held back if no death explained it in time.
  std::optional<actors::RunEnd> unexplained_end(Time now) const;

private:
  std::map<WorkerId, std::pair<Failure, Time>> broken_; ///< with the deadline
  std::optional<LostWorker> death_;
  std::optional<std::pair<actors::RunEnd, Time>> held_; ///< with the deadline
};

} // namespace troupe::runtime
