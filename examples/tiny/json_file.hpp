// A JSON value into a file; throws std::runtime_error that names the file if it
// cannot be written whole.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string_view>

namespace tiny {

/// `value`, indented, with a line end.
void write_json(const std::filesystem::path& file,
                const nlohmann::ordered_json& value);

/// `bytes` as they are.
void write_bytes(const std::filesystem::path& file, std::string_view bytes);

} // namespace tiny
