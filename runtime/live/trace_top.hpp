// A live run in a few lines of text (`troupe trace top`): what each device does
// and how much of the last seconds it was busy, which messages are under way,
// which were slowest. Follows the trace files like the page; keeps only the
// last seconds of them.
#pragma once

#include "config/trace_file.hpp"
#include "runtime/live/trace_follower.hpp"
#include "runtime/run_status.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::runtime {

struct TopDevice {
  std::string name;
  std::string process;
  double busy_share = 0; ///< of the window
  std::string task;      ///< that runs now; empty: none
  std::uint32_t step = 0;
  double running_s = 0;
};

/// Messages of one kind that were sent and are not handled yet.
struct TopQueue {
  std::string message;
  std::uint32_t count = 0;
  double oldest_s = 0;
};

struct TopMessage {
  std::string message;
  std::string from;
  std::string to;
  double wait_ms = 0; ///< from send to handling
  std::uint32_t step = 0;
};

struct TopView {
  double window_s = 0;
  std::vector<TopDevice> devices;
  std::vector<TopQueue> queues;    ///< most messages first
  std::vector<TopMessage> slowest; ///< of the window
  std::uint64_t dropped_events = 0;
};

/// What the last `window_s` seconds of these traces show, counted back from
/// their last event.
TopView make_top(const std::vector<trace::TraceFile>& files, double window_s);

/// The view and the run's state for people, or as one JSON document.
std::string top_text(const TopView& view, const RunStatus& status);
std::string top_json(const TopView& view, const RunStatus& status);

class TraceTop {
public:
  explicit TraceTop(const RunFolder& folder);

  /// Reads what was written since the last call.
  TopView look();

private:
  TraceFollower follower_;
  std::vector<std::string> names_;
  std::vector<trace::TraceFile> files_;
};

/// Drops events before `time_ns`, but for the begins of spans that were open
/// then.
void forget_before(trace::TraceFile& file, std::int64_t time_ns);

} // namespace troupe::runtime
