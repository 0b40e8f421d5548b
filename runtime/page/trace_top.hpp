// A live run in a few lines of text (`troupe trace top`): what each device does
// and how much of the last seconds it was busy, which messages are in flight,
// which were slowest. Follows the trace files like the page; keeps only the
// last seconds of them.
#pragma once

#include "config/trace/trace_file.hpp"
#include "runtime/page/trace_follower.hpp"
#include "runtime/run_folder/run_status.hpp"
#include "runtime/trace/run_graph.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::runtime {

struct TopDevice {
  std::string name;
  std::string process;
  double busy_share = 0; ///< in the window
  std::string task;      ///< running now; empty: none
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
  std::vector<TopMessage> slowest; ///< in the window
  std::uint64_t dropped_events = 0;
};

/// Summarizes the last `window_s` seconds of these traces, counted back from
/// their last event.
TopView make_top(const std::vector<trace::TraceFile>& files, double window_s);

/// Formats the view and the run's state as text. Tasks of these calls get the
/// page's colours; empty: no colours.
std::string top_text(const TopView& view, const RunStatus& status,
                     const CallKinds& coloured = {});
/// Formats them as one JSON document.
std::string top_json(const TopView& view, const RunStatus& status);

class TraceTop {
public:
  explicit TraceTop(const RunFolder& folder);

  /// Reads what was written since the last call and returns the view.
  TopView look();

private:
  TraceFollower follower_;
  std::vector<std::string> names_;
  std::vector<trace::TraceFile> files_;
};

/// Drops events before `time_ns`, except the starts of spans that were open
/// then.
void forget_before(trace::TraceFile& file, std::int64_t time_ns);

} // namespace troupe::runtime
