// The page of a run as one file, to send by mail: the document with all that
// its server would send, packed, inside. It needs no server and no network.
#pragma once

#include "runtime/run_folder/run_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::runtime {

/// Writes the report. Returns its size. Throws FailureError (io) if the file
/// cannot be written.
std::uint64_t write_trace_report(const RunFolder& folder,
                                 const std::filesystem::path& file);

/// Returns `page` with `frames` inside, which its script unpacks.
std::string page_with(std::string_view page, std::string_view frames);

} // namespace troupe::runtime
