#include "models/tokenizer/normalizer.hpp"

#include "models/tokenizer/characters.hpp"
#include "models/tokenizer/pre_tokenizer.hpp"

#include <utf8proc.h>

#include <algorithm>
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

void Normalizer::read(const internal::JsonAt& json) {
  static const std::map<std::string, int> forms{
    {"NFC", UTF8PROC_COMPOSE},
    {"NFD", UTF8PROC_DECOMPOSE},
    {"NFKC", UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
    {"NFKD", UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT},
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
