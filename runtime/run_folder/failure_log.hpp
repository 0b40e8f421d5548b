// failures.jsonl: one line per failure of a run, with what the run did about it
// and what that cost. The line of a recovery is written once its cost is known:
// when the next attempt has loaded, or when the run ends instead.
#pragma once

#include "config/base/error.hpp"
#include "runtime/run_folder/run_folder.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace troupe::runtime {

/// The cost of a recovery.
struct RecoveryCost {
  std::uint32_t lost_steps = 0; ///< committed steps that were rolled back
  double seconds = 0;           ///< from the failure until steps go on
};

/// One line; `time` is UTC and filled in by append_failure.
struct FailureRecord {
  std::uint32_t attempt = 1;
  std::string who; ///< "worker 1 (pid 4711)"
  std::string host;
  std::string when; ///< "step 12, actor_train"
  Errc code = Errc::ok;
  std::string what;
  std::string cause; ///< the root cause; empty: `what` is it
  /// Reaction of the run: restarted, rolled_back, waiting, gave_up,
  /// "stopped the run".
  std::string action;
  std::optional<RecoveryCost> cost; ///< of recoveries
};
void append_failure(const RunFolder& folder, const FailureRecord& record);

class FailureLog {
public:
  using Time = std::chrono::steady_clock::time_point;

  explicit FailureLog(RunFolder folder) : folder_(std::move(folder)) {}

  /// Holds the record of a failure that the run recovers from.
  void begin_recovery(FailureRecord record, Time now);
  /// Records why the run does not recover, although it has or could.
  void give_up(const std::string& reason) {
    gave_up_ = reason;
  }
  /// Returns that reason; empty: none.
  const std::string& gave_up() const {
    return gave_up_;
  }
  /// Appends a record at once: the recovery that is held waits for a node.
  void begin_wait(const FailureRecord& record, const std::string& node,
                  Time now);
  bool waits_for(const std::string& node) const {
    return awaited_ && awaited_->first == node;
  }
  /// Returns the node that the recovery waited for and how long, if it did.
  std::optional<std::pair<std::string, std::chrono::duration<double>>>
  end_wait(Time now);
  /// Appends the record that is held, if any: the recovery took until `now`.
  void end_recovery(Time now);

private:
  RunFolder folder_;
  std::optional<FailureRecord> held_;
  Time began_;
  std::string gave_up_;
  std::optional<std::pair<std::string, Time>> awaited_; ///< since
};

} // namespace troupe::runtime
