// Python's view of a text for templates: code points, white space, case.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models::jinja {

/// TemplateError where the text gets longer than `size_limit`.
void append(std::string& text, std::string_view more);

/// The code points, each as its bytes.
std::vector<std::string_view> characters(std::string_view text);
std::int64_t length(std::string_view text);

/// Place of the first `what` at or behind `from`, or npos; in time of the
/// text's size, which string::find does not promise.
std::size_t find_text(std::string_view text, std::string_view what,
                      std::size_t from = 0);

enum class Side : std::uint8_t { both, left, right };
/// str.strip: `chars` is a set of characters; empty: white space.
std::string strip(std::string_view text, std::string_view chars, Side side);

/// Simple case mapping of every character.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
/// First letter upper, the others lower.
std::string capitalize(std::string_view text);
/// `capitalize` of every run of letters.
std::string title(std::string_view text);
/// At most `count` replacements; -1: all.
std::string replace(std::string_view text, std::string_view what,
                    std::string_view with, std::int64_t count);
/// At most `most` cuts (-1: all); an empty separator: at runs of white space.
/// The parts are the caller's text.
std::vector<std::string_view> split(std::string_view text, std::string_view by,
                                    std::int64_t most);
std::vector<std::string_view> split_lines(std::string_view text);

} // namespace troupe::models::jinja
