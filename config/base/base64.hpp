// Bytes that a text format stores as base64 (RFC 4648).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Returns the bytes; nothing if a character is none of base64's 64, ending
/// '=' aside.
std::optional<std::string> from_base64(std::string_view text);

} // namespace troupe
