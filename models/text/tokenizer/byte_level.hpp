// GPT-2's alphabet: each byte is written as one visible character, so that a
// vocabulary of text can represent any bytes ("Ġ" is the space).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::models::tokenizer {

/// Returns the character for `byte`.
char32_t byte_level_char(std::uint8_t byte) noexcept;

/// Returns the bytes of `token`; nullopt if one of its characters is not in the
/// alphabet.
std::optional<std::string> byte_level_bytes(std::string_view token);

} // namespace troupe::models::tokenizer
