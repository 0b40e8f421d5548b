// The traces of a run for one viewer: their newest events and what is added, or
// the events around a step of the past; each preceded by the offset of its
// clock.
#pragma once

#include "runtime/page/feed_clocks.hpp"
#include "runtime/page/feed_message.hpp"
#include "runtime/page/trace_follower.hpp"
#include "runtime/page/trace_index.hpp"
#include "runtime/run_folder/run_folder.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::runtime {

class TraceFeed {
public:
  explicit TraceFeed(RunFolder folder);

  /// Replaces the newest events by those around `step`, counted from 1; 0: the
  /// newest again. Follows at the next call of begin().
  void show(std::uint32_t step);
  /// Begins what is wanted; returns false if that was begun before.
  bool begin(std::vector<FeedMessage>& found);
  /// Adds the names of new traces, whose numbers continue.
  void find_files(std::vector<FeedMessage>& found);
  /// Adds about `max_bytes` of records.
  void read(std::size_t max_bytes, std::vector<FeedMessage>& found);
  /// Returns the bytes that existed at discovery and are not read yet.
  std::uint64_t unread_bytes() const;

private:
  void begin_part(std::uint32_t step, std::vector<FeedMessage>& found);
  std::unique_ptr<TraceFollower> make_follower() const;
  void align_history();
  void add_clocks(bool all_arrived, std::vector<FeedMessage>& found);

  RunFolder folder_;
  TraceIndex index_;
  std::optional<TraceWindow> window_; ///< none: the newest events
  std::optional<std::uint32_t> wanted_step_;
  std::unique_ptr<TraceFollower> follower_;
  std::vector<std::string> names_; ///< by number
  FeedClocks clocks_;
};

} // namespace troupe::runtime
