// Rows of several steps in one safetensors file: what a checkpoint keeps of
// steps that are not done yet. They read back to the bit.
#pragma once

#include "config/ids.hpp"
#include "net/rows.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace troupe::models {

struct StepRows {
  StepId step;
  net::Rows rows;
};

/// Returns the bytes of data. FailureError (io) naming the path.
std::uint64_t write_row_file(const std::filesystem::path& path,
                             std::span<const StepRows> all);
/// In the order in which they were written. ConfigError naming the file if it
/// is none of `write_row_file`'s.
std::vector<StepRows> read_row_file(const std::filesystem::path& path);

} // namespace troupe::models
