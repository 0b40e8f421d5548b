// Follows the trace files of a run while processes write them: every call gives
// the whole records that were appended since the last one, as they stand in the
// file. The page reads the file format itself, so nothing is decoded here, and
// a run under way, a finished one and a crashed one are read alike.
#pragma once

#include "runtime/run_folder.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::runtime {

/// Records of one file. The file's magic leads the first chunk of each file.
struct TraceChunk {
  std::uint32_t file = 0; ///< in the order in which files were found
  std::string bytes;
};

class TraceFollower {
public:
  /// Events further than `history_bytes` before a file's end, as the file is
  /// when it is found, are left out; names and tracks never are.
  TraceFollower(RunFolder folder, std::uint64_t history_bytes);
  ~TraceFollower();
  TraceFollower(const TraceFollower&) = delete;
  TraceFollower& operator=(const TraceFollower&) = delete;

  /// Names of trace files that are new since the last call; their numbers go
  /// on from those of the last call.
  std::vector<std::string> find_files();
  /// About `max_bytes` of new records, over all files; empty: nothing new.
  std::vector<TraceChunk> read(std::size_t max_bytes);
  std::uint64_t skipped_bytes() const {
    return skipped_bytes_;
  }

private:
  struct File {
    std::string name;
    int descriptor = -1;
    std::uint64_t skip_before = 0; ///< events that end before it are left out
    std::uint64_t parsed = 0;      ///< bytes of whole records
    std::string pending;           ///< read after them
    bool broken = false;           ///< no trace file: left alone
  };

  std::string whole_records(File& file);

  RunFolder folder_;
  std::uint64_t history_bytes_;
  std::uint64_t skipped_bytes_ = 0;
  std::vector<File> files_;
};

} // namespace troupe::runtime
