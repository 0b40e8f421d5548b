// A merged trace as Chrome's JSON, which Perfetto and chrome://tracing open: a
// process per process, a track per actor and device, a slice per span, an arrow
// per message.
#pragma once

#include "runtime/trace/merged_trace.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::runtime {

/// Writes beside `path`, then renames. Throws FailureError (io) if it cannot.
void write_chrome_trace(const MergedTrace& trace,
                        const std::filesystem::path& path);

/// Merges trace/*.events of the run into its trace.json.
void write_chrome_trace(const std::filesystem::path& run_folder);

/// Errors of a Chrome trace; `problems` holds the first few sentences.
struct ChromeTraceCheck {
  std::uint64_t num_slices = 0;
  std::uint64_t num_arrows = 0; ///< with both ends
  std::uint64_t num_problems = 0;
  std::vector<std::string> problems;
};
/// Reads the file as a viewer does: slices of a track nest, every arrow has one
/// start and one later end, each inside a slice of its track. Throws
/// ConfigError if it is not JSON.
ChromeTraceCheck check_chrome_trace(const std::filesystem::path& path);

} // namespace troupe::runtime
