#include "models/text/jinja/text.hpp"

#include "models/io/utf8.hpp"
#include "models/text/jinja/value.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace troupe::models::jinja {

namespace {

/// Implements str.isspace.
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

bool is_printable(std::string_view character) {
  switch (
    utf8proc_category(static_cast<utf8proc_int32_t>(text_code(character)))) {
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_CS:
  case UTF8PROC_CATEGORY_CO:
  case UTF8PROC_CATEGORY_CN:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
    return false;
  case UTF8PROC_CATEGORY_ZS:
    return character == " ";
  default:
    return true;
  }
}

void append(std::string& text, std::string_view more) {
  if (text.size() + more.size() > size_limit)
    throw TemplateError("a text is longer than 64 MiB");
  text += more;
}

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
  std::int64_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count)
    at += internal::code_point_at(text, at).size;
  return count;
}

std::size_t find_text(std::string_view text, std::string_view what,
                      std::size_t from) {
  if (what.size() == 1) // sanitizers check all bytes that memmem may read
    return text.find(what.front(), from);
  const void* found
    = memmem(text.data() + from, text.size() - from, what.data(), what.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(
                            static_cast<const char*>(found) - text.data());
}

std::string strip(std::string_view text, std::string_view chars, Side side) {
  const auto listed = characters(chars);
  const std::set<std::string_view> dropped(listed.begin(), listed.end());
  const auto drop = [&](std::string_view c) {
    return chars.empty() ? text_is_space(text_code(c)) : dropped.contains(c);
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
  if (what.empty()) { // between all characters, as in Python
    for (const std::string_view c : characters(text)) {
      if (count != 0)
        append(out, with);
      count -= count > 0 ? 1 : 0;
      append(out, c);
    }
    if (count != 0)
      append(out, with);
    return out;
  }
  std::size_t at = 0;
  while (count != 0) {
    const std::size_t found = find_text(text, what, at);
    if (found == std::string_view::npos)
      break;
    append(out, text.substr(at, found - at));
    append(out, with);
    at = found + what.size();
    count -= count > 0 ? 1 : 0;
  }
  append(out, text.substr(at));
  return out;
}

std::vector<std::string_view> split(std::string_view text, std::string_view by,
                                    std::int64_t most) {
  std::vector<std::string_view> out;
  if (!by.empty()) {
    std::size_t at = 0;
    for (; most != 0; most -= most > 0 ? 1 : 0) {
      const std::size_t found = find_text(text, by, at);
      if (found == std::string_view::npos)
        break;
      out.push_back(text.substr(at, found - at));
      at = found + by.size();
    }
    out.push_back(text.substr(at));
    return out;
  }
  const auto all = characters(text);
  const auto is_space
    = [](std::string_view c) { return text_is_space(text_code(c)); };
  auto at = std::ranges::find_if_not(all, is_space);
  while (at != all.end()) {
    const auto end
      = most == 0 ? all.end() : std::find_if(at, all.end(), is_space);
    const char* first = at->data();
    auto part = text.substr(static_cast<std::size_t>(first - text.data()));
    if (end != all.end())
      part = part.substr(0, static_cast<std::size_t>(end->data() - first));
    else
      part = part.substr(0, strip(part, "", Side::right).size());
    out.push_back(part);
    at = std::find_if_not(end, all.end(), is_space);
    most -= most > 0 ? 1 : 0;
  }
  return out;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end
      = std::min(text.find_first_of("\r\n", at), text.size());
    out.push_back(text.substr(at, end - at));
    const bool pair = text.substr(end, 2) == "\r\n";
    at = end + (pair ? 2 : 1);
  }
  return out;
}

} // namespace troupe::models::jinja
