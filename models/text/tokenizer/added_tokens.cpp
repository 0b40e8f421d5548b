#include "models/text/tokenizer/added_tokens.hpp"

#include "models/io/utf8.hpp"
#include "models/text/tokenizer/characters.hpp"

#include <algorithm>

namespace troupe::models::tokenizer {

namespace {

AddedToken read_added_token(const internal::JsonAt& json) {
  AddedToken token;
  token.content = json.at("content").text();
  token.id
    = static_cast<std::int32_t>(json.at("id").integer(0, largest_added_id));
  token.special = json.boolean_or("special", false);
  token.normalized = json.boolean_or("normalized", !token.special);
  token.single_word = json.boolean_or("single_word", false);
  token.lstrip = json.boolean_or("lstrip", false);
  token.rstrip = json.boolean_or("rstrip", false);
  return token;
}

bool ends_with_word(std::string_view text) {
  std::size_t at = text.size();
  if (at == 0)
    return false;
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return is_word(internal::code_point_at(text, at).value);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word(internal::code_point_at(text, 0).value);
}

} // namespace

std::string token_text(const internal::JsonAt& token) {
  return token.is_object() ? token.at("content").text() : token.text();
}

AddedTokens::AddedTokens(const internal::JsonAt& list,
                         const Normalizer& normalizer) {
  if (list.is_null())
    return;
  for (std::size_t i = 0; i < list.size(); ++i) {
    AddedToken token = read_added_token(list.at(i));
    if (token.content.empty())
      continue;
    ids_.insert_or_assign(token.content, token.id);
    if (!tokens_.emplace(token.id, token).second)
      list.at(i).at("id").wrong("the id " + std::to_string(token.id)
                                + " occurs twice");
  }
  for (auto& [id, token] : tokens_) {
    token.decoded
      = token.normalized ? normalizer.apply(token.content) : token.content;
    finders_[token.normalized ? 1 : 0].add(token.decoded, id);
  }
  for (Finder& finder : finders_)
    std::stable_sort(finder.words.begin(), finder.words.end(),
                     [](const auto& a, const auto& b) {
                       return a.first.size() > b.first.size();
                     });
}

void AddedTokens::Finder::add(const std::string& word, std::int32_t id) {
  if (word.empty())
    return;
  words.emplace_back(word, id);
  first_bytes[static_cast<unsigned char>(word[0])] = true;
}

std::vector<Section> AddedTokens::split(std::string_view text,
                                        bool normalized) const {
  const Finder& finder = finders_[normalized ? 1 : 0];
  std::vector<Section> sections;
  std::size_t done = 0; // everything before it is in a section
  std::size_t at = 0;
  while (at < text.size()) {
    if (!finder.first_bytes[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const auto word = std::find_if(
      finder.words.begin(), finder.words.end(),
      [&](const auto& w) { return text.substr(at).starts_with(w.first); });
    if (word == finder.words.end()) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_.at(word->second);
    std::size_t begin = at;
    std::size_t end = at + word->first.size();
    at = end;
    if (token.single_word
        && (ends_with_word(text.substr(0, begin))
            || starts_with_word(text.substr(end))))
      continue;
    if (token.lstrip)
      begin -= trailing_white_space(text.substr(0, begin));
    if (token.rstrip)
      end += leading_white_space(text.substr(end));
    begin = std::max(begin, done);
    if (begin > done)
      sections.push_back({-1, done, begin});
    sections.push_back({token.id, begin, end});
    done = std::max(done, end);
  }
  if (done < text.size())
    sections.push_back({-1, done, text.size()});
  return sections;
}

const AddedToken* AddedTokens::find(std::int32_t id) const {
  const auto it = tokens_.find(id);
  return it == tokens_.end() ? nullptr : &it->second;
}

std::int32_t AddedTokens::id(std::string_view content) const {
  const auto it = ids_.find(content);
  return it == ids_.end() ? -1 : it->second;
}

} // namespace troupe::models::tokenizer
