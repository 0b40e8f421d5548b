// Which sign of a lost worker a run ends with. A death shows as the exit status
// of the process, as its closed connection, and in peers whose calls fail, in
// any order. The exit status says most, so the other two wait a moment for it.
// Pure: times are arguments.
#pragma once

#include "actors/step_report.hpp"
#include "config/error.hpp"
#include "config/ids.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::runtime {

struct LostWorker {
  WorkerId worker;
  Failure failure;
};

class FirstCause {
public:
  using Time = std::chrono::steady_clock::time_point;

  void connection_broke(const LostWorker& lost, Time now);
  /// Broken connections that no exit status explained in time.
  std::vector<LostWorker> unexplained(Time now) const;
  /// It is known, as well as it will be, why this worker is lost.
  void add_death(const LostWorker& lost);
  const std::optional<LostWorker>& first_death() const {
    return death_;
  }

  /// Keeps an end by a lost peer of whose death nobody has heard yet.
  void hold(const actors::RunEnd& end, Time now);
  bool holds_end() const {
    return held_.has_value();
  }
  /// The end that is kept, where no death explained it in time.
  std::optional<actors::RunEnd> unexplained_end(Time now) const;

private:
  std::map<WorkerId, std::pair<Failure, Time>> broken_; ///< until then
  std::optional<LostWorker> death_;
  std::optional<std::pair<actors::RunEnd, Time>> held_; ///< until then
};

} // namespace troupe::runtime
