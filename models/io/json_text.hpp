// Users' JSON files, parsed with errors that name file and line.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::models::internal {

/// Parses one JSON value. Throws ConfigError "FILE:LINE: not JSON: ..."
/// otherwise. `first_line` is the number of the text's first line within the
/// file.
nlohmann::json parse_json(std::string_view text, const std::string& file,
                          int first_line = 1);
/// Parses the same, keeping the members of objects in written order.
nlohmann::ordered_json parse_ordered_json(std::string_view text,
                                          const std::string& file,
                                          int first_line = 1);
/// Reads a file. Throws ConfigError if it is missing, unreadable or not JSON.
nlohmann::json read_json(const std::filesystem::path& path);

/// Returns the kind of a value for messages: "text", "a number", "a list", ...
std::string kind_of(const nlohmann::json& value);
std::string kind_of(const nlohmann::ordered_json& value);

} // namespace troupe::models::internal
