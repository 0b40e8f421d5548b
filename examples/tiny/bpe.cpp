#include "examples/tiny/bpe.hpp"

#include "examples/tiny/json_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

namespace tiny {

namespace {

using Json = nlohmann::ordered_json;

std::string utf8(std::uint32_t code) { // up to two bytes: below 0x800
  if (code < 0x80)
    return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

/// Maps bytes to printable characters as GPT-2 does: printable bytes map to
/// themselves, the others to 256, 257, ... in order.
struct ByteNames {
  std::array<std::string, 256> of_byte;
  std::vector<std::string> in_id_order;
};

ByteNames byte_names() {
  ByteNames names;
  const auto prints = [](int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
  };
  for (int byte = 0; byte < 256; ++byte) {
    if (!prints(byte))
      continue;
    names.of_byte[byte] = utf8(byte);
    names.in_id_order.push_back(names.of_byte[byte]);
  }
  std::uint32_t next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    if (prints(byte))
      continue;
    names.of_byte[byte] = utf8(next++);
    names.in_id_order.push_back(names.of_byte[byte]);
  }
  return names;
}

enum class CharKind { letter, digit, space, other };

CharKind kind_of(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (std::isalpha(byte))
    return CharKind::letter;
  if (std::isdigit(byte))
    return CharKind::digit;
  return std::isspace(byte) ? CharKind::space : CharKind::other;
}

/// Splits text like GPT-2's pre-tokenizer, for ASCII without contractions: runs
/// of one kind, where a single blank belongs to the run after it.
std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t first = begin;
    if (text[begin] == ' ' && begin + 1 < text.size()
        && kind_of(text[begin + 1]) != CharKind::space)
      first = begin + 1;
    std::size_t end = first + 1;
    while (end < text.size() && kind_of(text[end]) == kind_of(text[first]))
      ++end;
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

using Pair = std::pair<std::string, std::string>;

struct Word {
  std::vector<std::string> parts;
  std::size_t count = 0;
};

std::vector<Word> count_words(std::string_view text, const ByteNames& names) {
  std::map<std::string_view, std::size_t> counts;
  for (std::string_view word : split_words(text))
    ++counts[word];
  std::vector<Word> words;
  for (const auto& [word, count] : counts) {
    words.push_back({{}, count});
    for (char c : word)
      words.back().parts.push_back(
        names.of_byte[static_cast<unsigned char>(c)]);
  }
  return words;
}

/// Returns the most frequent pair of neighbors, or two empty strings if all
/// words are whole.
Pair best_pair(const std::vector<Word>& words) {
  std::map<Pair, std::size_t> counts;
  for (const Word& word : words)
    for (std::size_t i = 0; i + 1 < word.parts.size(); ++i)
      counts[{word.parts[i], word.parts[i + 1]}] += word.count;
  const auto best = std::max_element(
    counts.begin(), counts.end(),
    [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == counts.end() ? Pair{} : best->first;
}

void merge(Word& word, const Pair& pair) {
  for (std::size_t i = 0; i + 1 < word.parts.size(); ++i) {
    if (word.parts[i] != pair.first || word.parts[i + 1] != pair.second)
      continue;
    word.parts[i] += word.parts[i + 1];
    word.parts.erase(word.parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

Json special_entry(const std::string& content, std::size_t id) {
  return {{"id", id},        {"content", content}, {"single_word", false},
          {"lstrip", false}, {"rstrip", false},    {"normalized", false},
          {"special", true}};
}

Json byte_level(bool trim_offsets) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", trim_offsets},
          {"use_regex", true}};
}

Json model_section(const Bpe& bpe) {
  Json vocabulary = Json::object();
  for (std::size_t id = 0; id < bpe.vocabulary.size(); ++id)
    vocabulary[bpe.vocabulary[id]] = id;
  for (std::size_t i = 0; i < bpe.specials.size(); ++i)
    vocabulary[bpe.specials[i]] = bpe.vocabulary.size() + i;
  Json merges = Json::array();
  for (const Pair& pair : bpe.merges)
    merges.push_back({pair.first, pair.second});
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocabulary)},
          {"merges", std::move(merges)}};
}

} // namespace

Bpe train_bpe(std::string_view text, std::size_t size,
              std::vector<std::string> specials) {
  const ByteNames names = byte_names();
  std::vector<Word> words = count_words(text, names);
  Bpe bpe{{}, names.in_id_order, std::move(specials)};
  while (bpe.size() < size) {
    const Pair pair = best_pair(words);
    if (pair.first.empty())
      break;
    bpe.merges.push_back(pair);
    bpe.vocabulary.push_back(pair.first + pair.second);
    for (Word& word : words)
      merge(word, pair);
  }
  for (std::size_t i = 0; bpe.size() < size; ++i)
    bpe.vocabulary.push_back("<|unused" + std::to_string(i) + "|>");
  return bpe;
}

void write_tokenizer(const Bpe& bpe, const std::filesystem::path& folder) {
  Json added = Json::array();
  for (std::size_t i = 0; i < bpe.specials.size(); ++i)
    added.push_back(special_entry(bpe.specials[i], bpe.vocabulary.size() + i));
  write_json(folder / "tokenizer.json", {{"version", "1.0"},
                                         {"truncation", nullptr},
                                         {"padding", nullptr},
                                         {"added_tokens", std::move(added)},
                                         {"normalizer", nullptr},
                                         {"pre_tokenizer", byte_level(true)},
                                         {"post_processor", byte_level(false)},
                                         {"decoder", byte_level(true)},
                                         {"model", model_section(bpe)}});
  write_json(folder / "tokenizer_config.json",
             {{"tokenizer_class", "PreTrainedTokenizerFast"},
              {"add_prefix_space", false},
              {"clean_up_tokenization_spaces", false},
              {"eos_token", bpe.specials.at(0)},
              {"pad_token", bpe.specials.at(1)},
              {"model_max_length", 128}});
}

} // namespace tiny
