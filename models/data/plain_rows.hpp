// Files of rows in other forms as files of JSON lines: what is compressed, a
// table or on another machine becomes, once, a plain file in the user's cache,
// and all that reads rows maps it and reads it by position as any other. Line i
// of the plain file is line or row i of the original, so messages name the file
// that the user named.
#pragma once

#include "config/settings/settings.hpp"

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace troupe::models {

/// How a file stores rows.
enum class RowFormat : std::uint8_t { json_lines, gzip, parquet };
/// Returns the format by a file's first bytes; what is named .parquet is meant
/// to be one.
RowFormat row_format(std::string_view head, const std::filesystem::path& file);

/// Returns the name of the plain file: "train.jsonl" for "train.jsonl.gz" and
/// "train.parquet".
std::string plain_name(const std::filesystem::path& file);

/// Returns true for a file of this machine, and for any address of another's.
bool is_data_file(const std::filesystem::path& file);

/// Returns a file of JSON lines with the rows of `file`: itself if it is one or
/// cannot be read. Throws ConfigError that names `file` if it cannot be
/// fetched or converted, FailureError (io) if the cache cannot be written.
std::filesystem::path plain_rows(const std::filesystem::path& file);

/// Returns the settings with the plain files in place of those of data.train,
/// data.ptx and eval.data: what workers read.
Settings with_plain_rows(Settings settings);

} // namespace troupe::models
