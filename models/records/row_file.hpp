// Rows of several steps in one safetensors file: the part of a checkpoint for
// steps that are not finished. They read back bit-exactly.
#pragma once

#include "config/base/ids.hpp"
#include "net/base/rows.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace troupe::models {

struct StepRows {
  StepId step;
  net::Rows rows;
};

/// Writes the file and returns the bytes of data. Throws FailureError (io)
/// naming the path.
std::uint64_t write_row_file(const std::filesystem::path& path,
                             std::span<const StepRows> all);
/// Reads the rows in the order in which they were written. Throws ConfigError
/// naming the file if `write_row_file` did not write it.
std::vector<StepRows> read_row_file(const std::filesystem::path& path);

} // namespace troupe::models
