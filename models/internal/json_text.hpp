// JSON files of the user's, parsed with errors that name file and line.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::models::internal {

/// ConfigError "FILE:LINE: not JSON: .." if it is not one JSON value.
/// `first_line` is the number of the text's first line within the file.
nlohmann::json parse_json(std::string_view text, const std::string& file,
                          int first_line = 1);
/// The same with the members of objects in written order.
nlohmann::ordered_json parse_ordered_json(std::string_view text,
                                          const std::string& file,
                                          int first_line = 1);
/// ConfigError if the file is missing, unreadable or not JSON.
nlohmann::json read_json(const std::filesystem::path& path);

/// "text", "a number", "a list", ...: the kind of a value, for messages.
std::string kind_of(const nlohmann::json& value);
std::string kind_of(const nlohmann::ordered_json& value);

} // namespace troupe::models::internal
