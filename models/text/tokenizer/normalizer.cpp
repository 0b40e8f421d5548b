#include "models/text/tokenizer/normalizer.hpp"

#include "models/io/utf8.hpp"
#include "models/text/tokenizer/byte_level.hpp"
#include "models/text/tokenizer/characters.hpp"
#include "models/text/tokenizer/pre_tokenizer.hpp"
#include "models/text/tokenizer/precompiled.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <stdexcept>

namespace troupe::models::tokenizer {

namespace {

std::string to_normal_form(const std::string& text, int options) {
  if (std::all_of(text.begin(), text.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 128; }))
    return text; // ASCII is in every normal form
  utf8proc_uint8_t* out = nullptr;
  const auto size
    = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &out,
                   static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE));
  if (size < 0)
    throw std::runtime_error(utf8proc_errmsg(size));
  std::string result(reinterpret_cast<const char*>(out),
                     static_cast<std::size_t>(size));
  std::free(out);
  return result;
}

std::string strip_ends(const std::string& text, bool left, bool right) {
  const std::size_t begin = left ? leading_white_space(text) : 0;
  const std::string_view rest = std::string_view(text).substr(begin);
  return std::string(
    rest.substr(0, rest.size() - (right ? trailing_white_space(rest) : 0)));
}

/// Appends the replacement of one character.
using CharacterStep = void (*)(char32_t c, std::string& out);

std::string by_character(const std::string& text, CharacterStep step) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto point = internal::code_point_at(text, at);
    step(point.value, out);
    at += point.size;
  }
  return out;
}

/// Appends Rust's char::to_lowercase: per character, so a final sigma is like
/// any other.
void append_lowercase(char32_t c, std::string& out) {
  constexpr char32_t capital_i_with_dot
    = 0x130; // the only one that becomes two
  if (c == capital_i_with_dot)
    out += "i\xCC\x87";
  else
    internal::append_utf8(out, static_cast<char32_t>(utf8proc_tolower(
                                 static_cast<utf8proc_int32_t>(c))));
}

/// Removes marks of all kinds; Hugging Face keeps those added to Unicode since
/// 2017.
void append_without_accent(char32_t c, std::string& out) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
    return;
  default:
    internal::append_utf8(out, c);
  }
}

/// Implements SentencePiece's `nmt_nfkc`: removes control characters, replaces
/// unusual spaces by plain ones.
void append_nmt(char32_t c, std::string& out) {
  const auto in
    = [c](char32_t first, char32_t last) { return first <= c && c <= last; };
  const bool control = in(0x1, 0x8) || c == 0xB || in(0xE, 0x1F) || c == 0x7F
                       || c == 0x8F || c == 0x9F;
  const bool space = c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680
                     || in(0x200B, 0x200F) || c == 0x2028 || c == 0x2029
                     || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  if (!control)
    internal::append_utf8(out, space ? U' ' : c);
}

/// Returns whether BERT's clean_text keeps the character: no control character
/// but white space, no format character of Unicode 8 (what tokenizers knows),
/// no private one.
bool is_clean(char32_t c) {
  if (c == 0xFFFD)
    return false;
  if (c == '\t' || c == '\n' || c == '\r')
    return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CO:
  case UTF8PROC_CATEGORY_CS:
    return false;
  case UTF8PROC_CATEGORY_CF:
    return c == 0x890 || c == 0x891 || c == 0x8E2 || c == 0x110CD
           || (0x13430 <= c && c <= 0x1343F);
  default:
    return true;
  }
}

void append_clean(char32_t c, std::string& out) {
  if (is_clean(c))
    internal::append_utf8(out, is_white_space(c) ? U' ' : c);
}

void append_chinese_apart(char32_t c, std::string& out) {
  constexpr std::array<std::pair<char32_t, char32_t>, 8> blocks{{
    {0x4E00, 0x9FFF},
    {0x3400, 0x4DBF},
    {0x20000, 0x2A6DF},
    {0x2A700, 0x2B73F},
    {0x2B740, 0x2B81F},
    {0x2B920, 0x2CEAF},
    {0xF900, 0xFAFF},
    {0x2F800, 0x2FA1F},
  }};
  const bool chinese = std::ranges::any_of(blocks, [c](const auto& block) {
    return block.first <= c && c <= block.second;
  });
  if (chinese)
    out += ' ';
  internal::append_utf8(out, c);
  if (chinese)
    out += ' ';
}

void append_without_nonspacing(char32_t c, std::string& out) {
  if (utf8proc_category(static_cast<utf8proc_int32_t>(c))
      != UTF8PROC_CATEGORY_MN)
    internal::append_utf8(out, c);
}

std::string to_byte_level(const std::string& text) {
  std::string out;
  for (const char byte : text)
    internal::append_utf8(out,
                          byte_level_char(static_cast<std::uint8_t>(byte)));
  return out;
}

} // namespace

std::string replace_all(const Regex& regex, const std::string& text,
                        const std::string& with) {
  std::string out;
  std::size_t at = 0;
  for (const auto& [begin, end] : regex.matches(text)) {
    out.append(text, at, begin - at);
    out += with;
    at = end;
  }
  return out.append(text, at, std::string::npos);
}

Normalizer::Normalizer(const internal::JsonAt& json) {
  if (!json.is_null())
    read(json);
}

std::string Normalizer::apply(std::string text) const {
  for (const auto& step : steps_)
    text = step(std::move(text));
  return text;
}

void Normalizer::read_bert(const internal::JsonAt& json) {
  const auto add = [&](CharacterStep step) {
    steps_.emplace_back(
      [step](const std::string& text) { return by_character(text, step); });
  };
  const bool lowercase = json.boolean_or("lowercase", true);
  if (json.boolean_or("clean_text", true))
    add(append_clean);
  if (json.boolean_or("handle_chinese_chars", true))
    add(append_chinese_apart);
  if (json.boolean_or("strip_accents", lowercase)) {
    steps_.emplace_back([](const std::string& text) {
      return to_normal_form(text, UTF8PROC_DECOMPOSE);
    });
    add(append_without_nonspacing);
  }
  if (lowercase)
    add(append_lowercase);
}

void Normalizer::read(const internal::JsonAt& json) {
  static const std::map<std::string, int> forms{
    {"NFC", UTF8PROC_COMPOSE},
    {"NFD", UTF8PROC_DECOMPOSE},
    {"NFKC", UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
    {"NFKD", UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT},
  };
  static const std::map<std::string, CharacterStep> character_steps{
    {"Lowercase", append_lowercase},
    {"StripAccents", append_without_accent},
    {"Nmt", append_nmt},
  };
  const std::string type = json.at("type").text();
  if (type == "Sequence") {
    const internal::JsonAt list = json.at("normalizers");
    for (std::size_t i = 0; i < list.size(); ++i)
      read(list.at(i));
  } else if (const auto form = forms.find(type); form != forms.end()) {
    steps_.emplace_back([options = form->second](const std::string& text) {
      return to_normal_form(text, options);
    });
  } else if (const auto step = character_steps.find(type);
             step != character_steps.end()) {
    steps_.emplace_back([change = step->second](const std::string& text) {
      return by_character(text, change);
    });
  } else if (type == "BertNormalizer") {
    read_bert(json);
  } else if (type == "Precompiled") {
    steps_.emplace_back(
      [table = Precompiled(json.at("precompiled_charsmap"))](
        const std::string& text) { return table.apply(text); });
  } else if (type == "ByteLevel") {
    steps_.emplace_back(to_byte_level);
  } else if (type == "Prepend") {
    steps_.emplace_back(
      [prefix = json.at("prepend").text()](const std::string& text) {
        return text.empty() ? text : prefix + text;
      });
  } else if (type == "Replace") {
    steps_.emplace_back(
      [regex = read_pattern(json.at("pattern")),
       with = json.at("content").text()](const std::string& text) {
        return replace_all(regex, text, with);
      });
  } else if (type == "Strip") {
    steps_.emplace_back(
      [left = json.boolean_or("strip_left", true),
       right = json.boolean_or("strip_right", true)](const std::string& text) {
        return strip_ends(text, left, right);
      });
  } else {
    json.at("type").unsupported("the normalizer '" + type + "'");
  }
}

} // namespace troupe::models::tokenizer
