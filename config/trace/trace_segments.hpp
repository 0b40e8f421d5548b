// The trace of one process as files: "master_01.events", and once trace.max_gb
// makes it drop its oldest events, "master_01.000002.events" and so on, of
// which the first are removed again. Each begins with all names, so every file
// can be read without its predecessors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::trace {

struct Segment {
  std::filesystem::path path;
  std::uint32_t number = 1;
};

/// The files of one process in one attempt, oldest first.
struct SegmentedTrace {
  std::string name; ///< name of its first file, which may be gone
  std::vector<Segment> segments;
};

/// Returns the path of segment `number`, counted from 1, of the trace that
/// begins with `first`.
std::filesystem::path segment_path(const std::filesystem::path& first,
                                   std::uint32_t number);

/// Returns the traces in `folder`, by name; empty if there is no such folder.
std::vector<SegmentedTrace> list_traces(const std::filesystem::path& folder);

/// Removes the files of the trace that begins with `first`, if any.
void remove_trace(const std::filesystem::path& first);

} // namespace troupe::trace
