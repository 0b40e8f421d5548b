// Aligns the clocks of several hosts: no arrow arrives before it was sent, so
// each message between two processes bounds how far apart their clocks are, and
// those of ten seconds in both directions give an offset with its error. Times
// of one host are on one clock already. Files of finished runs and a run that
// is watched are aligned by the same code: events are taken one by one.
#pragma once

#include "config/trace/trace_file.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <unordered_map>
#include <vector>

namespace troupe::runtime {

/// Converts the times of a trace file to those of the first one.
struct ClockOffset {
  std::int64_t begin_ns = 0;        ///< time of its first event, on its own
                                    ///< clock
  std::vector<std::int64_t> add_ns; ///< for each ten seconds from there on
  /// The largest error; 0: the same clock, -1: unknown, the hosts' real-time
  /// clocks were compared.
  std::int64_t error_ns = 0;

  std::int64_t at(std::int64_t time_ns) const;
  /// Returns when part `i` of `add_ns` begins, on its own clock.
  std::int64_t begin_of(std::size_t i) const;
};

/// The process that wrote a trace, as far as clocks are concerned.
struct ClockedProcess {
  std::uint32_t number = 0;
  std::uint32_t attempt = 0; ///< flow ids of different attempts may be equal
  std::int64_t realtime_less_monotonic_ns = 0;
};

class ClockAligner {
public:
  /// Keeps about `most_ends` messages of which one end is unknown, the newest.
  explicit ClockAligner(std::size_t most_ends
                        = std::numeric_limits<std::size_t>::max());

  /// Adds a trace and returns its index. Times are converted to the clock of
  /// the first one; of each attempt, messages with the process of that number
  /// count.
  std::size_t add_file(const ClockedProcess& process);
  /// Takes an event; one that was taken before changes nothing.
  void add_event(std::size_t file, const trace::Event& event);

  /// Returns the offset by the events so far. While they still arrive, the
  /// newest ten seconds have that of those before.
  ClockOffset offset(std::size_t file, bool all_arrived) const;
  /// Returns a number that changes when offset(file, false) may have changed
  /// by more than its error.
  std::uint64_t version(std::size_t file) const;

private:
  /// Bounds from messages on (their clock) - (the reference's).
  struct Bounds {
    std::int64_t lowest;
    std::int64_t highest;
    Bounds();
    bool known() const;
  };
  struct File {
    ClockedProcess process;
    bool has_events = false;
    std::int64_t begin_ns = 0;
    std::vector<Bounds> spans; ///< up to that of the newest message that counts
    bool any_known = false;
    bool contradicts = false; ///< bounds exclude that the clocks are one
  };
  struct End {
    std::int64_t time_ns;
    std::size_t file;
    bool sent;
  };
  using Ends = std::unordered_map<std::uint64_t, End>;
  struct Attempt {
    std::size_t master = 0; ///< index of its file, once there is one
    bool has_master = false;
    Ends newer;
    Ends older;
  };

  void add_bound(File& file, const End& own, const End& masters);
  static bool take_other(Ends& ends, std::uint64_t flow, bool sent, End& found);
  const File& master_of(const File& file) const;
  std::int64_t master_add_ns(const File& file) const;
  std::int64_t realtime_add_ns(const File& file, const File& reference) const;
  bool is_one_host(const File& file) const;

  std::size_t most_ends_;
  std::vector<File> files_;
  std::map<std::uint32_t, Attempt> attempts_;
};

/// Returns one for each file, by ascending number of their processes; attempts
/// follow each other. Only messages with the first process count.
std::vector<ClockOffset>
clock_offsets(const std::vector<trace::TraceFile>& files);

} // namespace troupe::runtime
