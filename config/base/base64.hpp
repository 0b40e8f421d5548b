// Bytes that a text format stores as base64 (RFC 4648): tokenizers do, and
// traces in a report's page. Both ways are here so that they share the letters.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Returns the bytes as letters, padded with '=' to a multiple of four.
std::string to_base64(std::string_view bytes);

/// Returns the bytes; nothing if a character is none of base64's 64, ending
/// '=' aside.
std::optional<std::string> from_base64(std::string_view text);

} // namespace troupe
