// Writes a JSON value to a file; throws std::runtime_error that names the file
// if it cannot be written completely.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string_view>

namespace tiny {

/// Writes `value`, indented, with a line end.
void write_json(const std::filesystem::path& file,
                const nlohmann::ordered_json& value);

/// Writes `bytes` unchanged.
void write_bytes(const std::filesystem::path& file, std::string_view bytes);

} // namespace tiny
