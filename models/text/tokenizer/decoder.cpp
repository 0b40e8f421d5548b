#include "models/text/tokenizer/decoder.hpp"

#include "models/io/utf8.hpp"
#include "models/text/tokenizer/byte_level.hpp"
#include "models/text/tokenizer/normalizer.hpp"
#include "models/text/tokenizer/pre_tokenizer.hpp"

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace troupe::models::tokenizer {

namespace {

using Tokens = std::vector<std::string>;

constexpr const char* replacement_char = "\xEF\xBF\xBD";

Tokens fuse_tokens(const Tokens& tokens) {
  std::string all;
  for (const std::string& token : tokens)
    all += token;
  return {all};
}

Tokens bytes_of_tokens(const Tokens& tokens) {
  std::string bytes;
  for (const std::string& token : tokens)
    bytes += byte_level_bytes(token).value_or(token);
  return {internal::replace_invalid_utf8(bytes)};
}

/// Returns the byte of "<0xAB>", or -1.
int fallback_byte(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>')
    return -1;
  int byte = -1;
  const auto [end, error]
    = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  return error == std::errc() && end == token.data() + 5 && byte >= 0 ? byte
                                                                      : -1;
}

Tokens join_byte_tokens(const Tokens& tokens) {
  Tokens out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty())
      return;
    if (internal::first_invalid_utf8(bytes) == std::string_view::npos)
      out.push_back(bytes);
    else
      out.insert(out.end(), bytes.size(), replacement_char);
    bytes.clear();
  };
  for (const std::string& token : tokens) {
    if (const int byte = fallback_byte(token); byte >= 0) {
      bytes += static_cast<char>(byte);
      continue;
    }
    flush();
    out.push_back(token);
  }
  flush();
  return out;
}

std::string strip_content(std::string_view token, const std::string& content,
                          std::int64_t start, std::int64_t stop) {
  for (std::int64_t i = 0; i < start && token.starts_with(content); ++i)
    token.remove_prefix(content.size());
  for (std::int64_t i = 0; i < stop && token.ends_with(content); ++i)
    token.remove_suffix(content.size());
  return std::string(token);
}

Tokens metaspace_to_space(Tokens tokens, const std::string& mark,
                          bool drop_first) {
  const Regex regex(literal_pattern(mark));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = replace_all(regex, tokens[i], i == 0 && drop_first ? "" : " ");
  return tokens;
}

/// Removes the space that English has not, as BERT's tokenizers do.
std::string without_english_spaces(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11>
    repairs{{
      {" .", "."},
      {" ?", "?"},
      {" !", "!"},
      {" ,", ","},
      {" ' ", "'"},
      {" n't", "n't"},
      {" 'm", "'m"},
      {" do not", " don't"},
      {" 's", "'s"},
      {" 've", "'ve"},
      {" 're", "'re"},
    }};
  for (const auto& [wrong, right] : repairs)
    for (std::size_t at = text.find(wrong); at != std::string::npos;
         at = text.find(wrong, at + right.size()))
      text.replace(at, wrong.size(), right);
  return text;
}

Tokens join_word_pieces(Tokens tokens, const std::string& prefix,
                        bool cleans_up) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::string& token = tokens[i];
    if (i > 0)
      token
        = token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
    if (cleans_up)
      token = without_english_spaces(std::move(token));
  }
  return tokens;
}

} // namespace

Decoder::Decoder(const internal::JsonAt& json) {
  if (json.is_null())
    return;
  joined_by_space_ = false;
  read(json);
}

std::string Decoder::apply(std::vector<std::string> tokens) const {
  for (const Step& step : steps_)
    tokens = step(std::move(tokens));
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && joined_by_space_)
      text += ' ';
    text += tokens[i];
  }
  return text;
}

void Decoder::read(const internal::JsonAt& json) {
  const std::string type = json.at("type").text();
  if (type == "Sequence") {
    const internal::JsonAt list = json.at("decoders");
    for (std::size_t i = 0; i < list.size(); ++i)
      read(list.at(i));
  } else if (!read_simple(json, type)) {
    json.at("type").unsupported("the decoder '" + type + "'");
  }
}

bool Decoder::read_simple(const internal::JsonAt& json,
                          const std::string& type) {
  if (type == "ByteLevel") {
    steps_.emplace_back(bytes_of_tokens);
  } else if (type == "Fuse") {
    steps_.emplace_back(fuse_tokens);
  } else if (type == "ByteFallback") {
    steps_.emplace_back(join_byte_tokens);
  } else if (type == "Replace") {
    steps_.emplace_back([regex = read_pattern(json.at("pattern")),
                         with = json.at("content").text()](Tokens tokens) {
      for (std::string& token : tokens)
        token = replace_all(regex, token, with);
      return tokens;
    });
  } else if (type == "Strip") {
    const std::string content = json.at("content").text();
    if (content.empty())
      json.at("content").expected("one character");
    steps_.emplace_back(
      [content, start = json.at("start").integer(0, INT32_MAX),
       stop = json.at("stop").integer(0, INT32_MAX)](Tokens tokens) {
        for (std::string& token : tokens)
          token = strip_content(token, content, start, stop);
        return tokens;
      });
  } else if (type == "WordPiece") {
    steps_.emplace_back(
      [prefix = json.text_or("prefix", "##"),
       cleans_up = json.boolean_or("cleanup", true)](Tokens tokens) {
        return join_word_pieces(std::move(tokens), prefix, cleans_up);
      });
  } else if (type == "Metaspace") {
    const bool drop = json.text_or("prepend_scheme", "always") != "never"
                      && json.boolean_or("add_prefix_space", true);
    steps_.emplace_back(
      [mark = json.at("replacement").text(), drop](Tokens tokens) {
        return metaspace_to_space(std::move(tokens), mark, drop);
      });
  } else {
    return false;
  }
  return true;
}

} // namespace troupe::models::tokenizer
