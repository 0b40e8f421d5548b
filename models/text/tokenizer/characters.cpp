#include "models/text/tokenizer/characters.hpp"

#include "models/io/utf8.hpp"

#include <utf8proc.h>

namespace troupe::models::tokenizer {

bool is_white_space(char32_t c) noexcept {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0
         || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028
         || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word(char32_t c) noexcept {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_PC:
    return true;
  default:
    break;
  }
  // zero-width joiners, and the enclosed letters that count as alphabetic
  return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9)
         || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169)
         || (c >= 0x1F170 && c <= 0x1F189);
}

std::size_t trailing_white_space(std::string_view text) noexcept {
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t start = end - 1;
    while (start > 0
           && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80)
      --start;
    if (!is_white_space(internal::code_point_at(text, start).value))
      break;
    end = start;
  }
  return text.size() - end;
}

std::size_t leading_white_space(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto point = internal::code_point_at(text, at);
    if (!is_white_space(point.value))
      break;
    at += point.size;
  }
  return at;
}

} // namespace troupe::models::tokenizer
