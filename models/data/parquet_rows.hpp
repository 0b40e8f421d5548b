// Rows of a Parquet file as JSON lines, converted by a helper: python3 with the
// package pyarrow, which whoever has such files has. Linking Arrow's C++ of
// that package instead would bind every program, users' too, to one version of
// it and load 60 MB into each worker, for files that one process reads once.
#pragma once

#include <filesystem>
#include <string_view>

namespace troupe::models {

/// Returns true for the first bytes of a Parquet file.
bool is_parquet(std::string_view bytes);

/// Writes the rows of `file` to `target`, a JSON object per line: line i is row
/// i, from 1. Bytes become base64, times ISO 8601, numbers that JSON lacks
/// null. Throws ConfigError that names `file` if python3, pyarrow or the file
/// cannot do it.
void write_parquet_rows(const std::filesystem::path& file,
                        const std::filesystem::path& target);

} // namespace troupe::models
