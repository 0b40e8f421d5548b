// Reads a run folder for a viewer: what exists, then what is new, in portions.
// A WebSocket sends them, a report keeps them. Everything comes from files, so
// live, finished and crashed runs look alike.
#pragma once

#include "runtime/page/feed_message.hpp"
#include "runtime/page/line_follower.hpp"
#include "runtime/page/token_texts.hpp"
#include "runtime/page/trace_feed.hpp"
#include "runtime/run_folder/run_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace troupe::runtime {

class RunFeed {
public:
  /// `beside`: names of runs that the viewer may compare this one with.
  explicit RunFeed(RunFolder folder, std::vector<std::string> beside = {});

  /// Returns what is new since the last call; the first call begins with the
  /// run's dataflow.
  std::vector<FeedMessage> next();
  /// From the next call on returns the events around `step`, counted from 1, in
  /// place of the newest; 0: the newest again.
  void show(std::uint32_t step) {
    traces_.show(step);
  }
  /// The next call returns the samples of `step` as well, counted from 1, which
  /// may be older than those at the beginning: as `samples of STEP`.
  void show_samples(std::uint32_t step) {
    samples_of_.push_back(step);
  }
  /// Returns whether all that existed at the first call was returned.
  bool is_loaded() const {
    return loaded_;
  }

private:
  /// A growing text file and the message type under which its lines are sent.
  struct Lines {
    std::filesystem::path path;
    std::string type;
    std::uint64_t history_bytes = 0;
    std::unique_ptr<LineFollower> file;
  };

  void add_beginning();
  void add_text(const std::string& type, const std::string& text);
  void add_lines(Lines& lines);
  void find_files();
  void find_worker_logs();
  std::uint64_t unread_bytes() const;
  void add_samples_of(std::uint32_t step);
  void add_loading();
  void add_status();

  RunFolder folder_;
  std::vector<std::string> beside_;
  TraceFeed traces_;
  TokenTexts tokens_;
  std::vector<Lines> lines_;
  std::set<std::string> worker_logs_; ///< followed already
  std::string status_;
  std::vector<std::uint32_t> samples_of_; ///< steps whose samples are wanted
  std::uint64_t to_load_ = 0;             ///< the most that was unread
  bool began_ = false;                    ///< the dataflow was returned
  bool loaded_ = false; ///< all that existed at first was returned, and
                        ///< the viewer was notified
  std::vector<FeedMessage> found_;
};

} // namespace troupe::runtime
