// Python's operations on text for templates: code points, white space, case.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models::jinja {

/// Appends `more`. Throws TemplateError if the text exceeds `size_limit`.
void append(std::string& text, std::string_view more);

/// Returns the code points, each as its bytes.
std::vector<std::string_view> characters(std::string_view text);
std::int64_t length(std::string_view text);

/// str.isprintable of one code point.
bool is_printable(std::string_view character);

/// Returns the position of the first `what` at or after `from`, or npos, in
/// time linear in the size of the text, which string::find does not promise.
std::size_t find_text(std::string_view text, std::string_view what,
                      std::size_t from = 0);

enum class Side : std::uint8_t { both, left, right };
/// Implements str.strip: `chars` is a set of characters; empty: white space.
std::string strip(std::string_view text, std::string_view chars, Side side);

/// Returns the text with the simple case mapping of every character.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
/// Returns the text with its first letter in upper case, the others in lower
/// case.
std::string capitalize(std::string_view text);
/// Applies `capitalize` to every run of letters.
std::string title(std::string_view text);
/// Replaces at most `count` occurrences; -1: all.
std::string replace(std::string_view text, std::string_view what,
                    std::string_view with, std::int64_t count);
/// Splits at most `most` times (-1: no limit); an empty separator splits at
/// runs of white space. The parts point into `text`.
std::vector<std::string_view> split(std::string_view text, std::string_view by,
                                    std::int64_t most);
std::vector<std::string_view> split_lines(std::string_view text);

} // namespace troupe::models::jinja
