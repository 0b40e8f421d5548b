// Aligns the clocks of the traces that a viewer gets: the page adds what it is
// sent and compares no clocks itself.
#pragma once

#include "runtime/trace/clock_offsets.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::runtime {

class FeedClocks {
public:
  FeedClocks();

  /// Takes whole records of a trace; ones that were taken before change
  /// nothing.
  void add(const std::string& trace, std::string_view records);
  /// Returns what changed since the last call as a JSON list of {file, from,
  /// add, error}: in times of `file` after `from`, until its next entry, `add`
  /// is added. Empty: nothing. `all_arrived`: until later, no more events come.
  std::string changes(bool all_arrived);

private:
  struct File {
    std::string name;
    std::uint64_t version = 0; ///< of what was sent
    std::vector<std::int64_t> sent_add_ns;
    std::int64_t sent_error_ns = 0;
  };

  ClockAligner aligner_;
  std::vector<File> files_;
  std::map<std::string, std::size_t> indices_; ///< by name
};

} // namespace troupe::runtime
