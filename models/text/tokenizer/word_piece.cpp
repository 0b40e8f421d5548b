// WordPiece, the model of BERT: a word is cut from its start into the longest
// tokens of the vocabulary, those after the first with a prefix (`##`). A word
// with a part that no token has is unknown as a whole, as is one that is too
// long.
//
// Source: Wu et al. 2016 (arXiv 1609.08144); BERT's greedy variant of it.
#include "models/io/utf8.hpp"
#include "models/text/tokenizer/model.hpp"
#include "models/text/tokenizer/token_trie.hpp"

#include <algorithm>

namespace troupe::models::tokenizer {

namespace {

class WordPiece : public Model {
public:
  explicit WordPiece(const internal::JsonAt& model)
    : Model(Vocabulary(model.at("vocab"))),
      prefix_(model.text_or("continuing_subword_prefix", "##")),
      longest_word_(
        model.has("max_input_chars_per_word") ? static_cast<std::size_t>(
          model.at("max_input_chars_per_word").integer(0, INT32_MAX))
                                              : 100),
      unknown_(vocabulary_.id(model.text_or("unk_token", "[UNK]"))) {
    if (unknown_ < 0)
      model.at("unk_token").expected("a token of the vocabulary");
    std::vector<std::pair<std::string_view, std::int32_t>> tokens;
    for (const auto& [token, id] : vocabulary_.ids()) {
      longest_token_ = std::max(longest_token_, token.size());
      if (!token.empty())
        tokens.emplace_back(token, id);
    }
    trie_ = TokenTrie(std::move(tokens));
  }

  void encode(std::string_view piece,
              std::vector<std::int32_t>& ids) const override {
    const std::size_t first = ids.size();
    if (characters(piece) <= longest_word_ && cut(piece, ids))
      return;
    ids.resize(first);
    ids.push_back(unknown_);
  }

private:
  static std::size_t characters(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (byte & 0xC0) != 0x80; }));
  }

  /// Returns the longest token at the start of `rest`, whose text begins with
  /// `before`; size 0: none.
  std::pair<std::int32_t, std::size_t> longest(std::string_view before,
                                               std::string_view rest) const {
    std::string text(before);
    text += rest.substr(0, longest_token_);
    std::pair<std::int32_t, std::size_t> found{unknown_, 0};
    trie_.each_prefix(text, [&](std::size_t size, std::int32_t id) {
      if (size > before.size())
        found = {id, size - before.size()};
    });
    return found;
  }

  bool cut(std::string_view word, std::vector<std::int32_t>& ids) const {
    std::string_view before;
    while (!word.empty()) {
      const auto [id, size] = longest(before, word);
      if (size == 0)
        return false;
      ids.push_back(id);
      word.remove_prefix(size);
      before = prefix_;
    }
    return true;
  }

  std::string prefix_;
  std::size_t longest_word_;      ///< characters
  std::size_t longest_token_ = 0; ///< bytes, with its prefix
  TokenTrie trie_;
  std::int32_t unknown_;
};

} // namespace

std::unique_ptr<Model> read_word_piece(const internal::JsonAt& model) {
  return std::make_unique<WordPiece>(model);
}

} // namespace troupe::models::tokenizer
