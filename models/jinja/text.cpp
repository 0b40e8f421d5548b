#include "models/jinja/text.hpp"

#include "models/internal/utf8.hpp"

#include <utf8proc.h>

namespace troupe::models::jinja {

namespace {

/// str.isspace.
bool text_is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85
         || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A)
         || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F
         || c == 0x3000;
}

char32_t text_code(std::string_view character) {
  return internal::code_point_at(character, 0).value;
}

template <class Map>
std::string text_mapped(std::string_view text, Map map) {
  std::string out;
  out.reserve(text.size());
  for (const std::string_view c : characters(text))
    internal::append_utf8(out, static_cast<char32_t>(map(
                                 static_cast<utf8proc_int32_t>(text_code(c)))));
  return out;
}

bool text_is_letter(std::string_view character) {
  const auto code = static_cast<utf8proc_int32_t>(text_code(character));
  return utf8proc_toupper(code) != code || utf8proc_tolower(code) != code;
}

} // namespace

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = internal::code_point_at(text, at).size;
    out.push_back(text.substr(at, size));
    at += size;
  }
  return out;
}

std::int64_t length(std::string_view text) {
  return static_cast<std::int64_t>(characters(text).size());
}

std::string strip(std::string_view text, std::string_view chars, Side side) {
  const auto drop = [&](std::string_view c) {
    return chars.empty() ? text_is_space(text_code(c))
                         : chars.find(c) != std::string_view::npos;
  };
  const auto all = characters(text);
  std::size_t begin = 0;
  std::size_t end = all.size();
  if (side != Side::right)
    while (begin < end && drop(all[begin]))
      ++begin;
  if (side != Side::left)
    while (end > begin && drop(all[end - 1]))
      --end;
  std::string out;
  for (std::size_t i = begin; i < end; ++i)
    out += all[i];
  return out;
}

std::string upper(std::string_view text) {
  return text_mapped(text, utf8proc_toupper);
}

std::string lower(std::string_view text) {
  return text_mapped(text, utf8proc_tolower);
}

std::string capitalize(std::string_view text) {
  const auto all = characters(text);
  if (all.empty())
    return "";
  return upper(all[0]) + lower(text.substr(all[0].size()));
}

std::string title(std::string_view text) {
  std::string out;
  bool inside = false;
  for (const std::string_view c : characters(text)) {
    out += inside ? lower(c) : upper(c);
    inside = text_is_letter(c);
  }
  return out;
}

std::string replace(std::string_view text, std::string_view what,
                    std::string_view with, std::int64_t count) {
  std::string out;
  if (what.empty()) { // between all characters, as Python does
    for (const std::string_view c : characters(text)) {
      if (count != 0)
        out += with;
      count -= count > 0 ? 1 : 0;
      out += c;
    }
    return count != 0 ? out + std::string(with) : out;
  }
  std::size_t at = 0;
  while (count != 0) {
    const std::size_t found = text.find(what, at);
    if (found == std::string_view::npos)
      break;
    out += text.substr(at, found - at);
    out += with;
    at = found + what.size();
    count -= count > 0 ? 1 : 0;
  }
  return out + std::string(text.substr(at));
}

std::vector<std::string> split(std::string_view text, std::string_view by,
                               std::int64_t most) {
  std::vector<std::string> out;
  if (!by.empty()) {
    std::size_t at = 0;
    for (; most != 0; most -= most > 0 ? 1 : 0) {
      const std::size_t found = text.find(by, at);
      if (found == std::string_view::npos)
        break;
      out.emplace_back(text.substr(at, found - at));
      at = found + by.size();
    }
    out.emplace_back(text.substr(at));
    return out;
  }
  std::string rest = strip(text, "", Side::left);
  while (!rest.empty()) {
    std::size_t end = 0;
    for (const std::string_view c : characters(rest)) {
      if (text_is_space(text_code(c)))
        break;
      end += c.size();
    }
    if (most == 0)
      end = strip(rest, "", Side::right).size();
    out.push_back(rest.substr(0, end));
    rest = strip(std::string_view(rest).substr(end), "", Side::left);
    most -= most > 0 ? 1 : 0;
  }
  return out;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end
      = std::min(text.find_first_of("\r\n", at), text.size());
    out.emplace_back(text.substr(at, end - at));
    const bool pair = text.substr(end, 2) == "\r\n";
    at = end + (pair ? 2 : 1);
  }
  return out;
}

} // namespace troupe::models::jinja
