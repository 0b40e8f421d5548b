// GPT-2's alphabet: each byte is written as one visible character, so that a
// vocabulary of text can hold any bytes ("Ġ" is the space).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::models::tokenizer {

/// The character that stands for `byte`.
char32_t byte_level_char(std::uint8_t byte) noexcept;

/// The bytes that `token` stands for; nullopt if a character of it is not in
/// the alphabet.
std::optional<std::string> byte_level_bytes(std::string_view token);

} // namespace troupe::models::tokenizer
