// Classes of characters as Rust's standard library and regex crate define them.
#pragma once

#include <cstddef>
#include <string_view>

namespace troupe::models::tokenizer {

/// Returns true for Unicode White_Space.
bool is_white_space(char32_t c) noexcept;
/// Returns true for \w of Rust's regex crate: alphabetic, mark, digit,
/// connector, joiner.
bool is_word(char32_t c) noexcept;

/// Returns the bytes of white space at the end / the start of valid UTF-8.
std::size_t trailing_white_space(std::string_view text) noexcept;
std::size_t leading_white_space(std::string_view text) noexcept;

} // namespace troupe::models::tokenizer
