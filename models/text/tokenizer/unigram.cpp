// Unigram, the model of T5, ALBERT and XLM-R: the tokens of a piece are those
// of the highest sum of log-probabilities (Viterbi over the positions of its
// characters). A character that no token has is unknown, at a score below that
// of every token; neighbors that are unknown are one token, or its bytes.
//
// Source: Kudo 2018 (arXiv 1804.10959).
#include "config/base/error.hpp"
#include "models/io/utf8.hpp"
#include "models/text/tokenizer/model.hpp"
#include "models/text/tokenizer/token_trie.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace troupe::models::tokenizer {

namespace {

constexpr double unknown_penalty = 10.0; // SentencePiece's

/// The `vocab` list: [token, log-probability] by id.
struct Scored {
  std::vector<std::string> tokens;
  std::vector<double> scores;

  explicit Scored(const internal::JsonAt& vocab) {
    for (std::size_t i = 0; i < vocab.size(); ++i) {
      tokens.push_back(vocab.at(i).at(std::size_t{0}).text());
      scores.push_back(vocab.at(i).at(std::size_t{1}).number());
    }
    if (tokens.empty())
      vocab.expected("at least one token");
  }
};

class Unigram : public Model {
public:
  Unigram(const internal::JsonAt& model, Scored scored)
    : Model(Vocabulary(scored.tokens)),
      scores_(std::move(scored.scores)),
      least_(*std::ranges::min_element(scores_)),
      byte_fallback_(model.boolean_or("byte_fallback", false)) {
    if (model.has("unk_id"))
      unknown_ = static_cast<std::int32_t>(model.at("unk_id").integer(
        0, static_cast<std::int64_t>(scores_.size()) - 1));
    std::vector<std::pair<std::string_view, std::int32_t>> tokens;
    for (const auto& [token, id] : vocabulary_.ids())
      if (!token.empty())
        tokens.emplace_back(token, id);
    trie_ = TokenTrie(std::move(tokens));
    for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte)
      byte_ids_[byte] = vocabulary_.id(fmt::format("<0x{:02X}>", byte));
  }

  void encode(std::string_view piece,
              std::vector<std::int32_t>& ids) const override {
    const std::vector<Step> best = best_path(piece);
    std::vector<std::string_view> texts;
    bool after_unknown = false;
    for (std::size_t end = piece.size(); end > 0; end = best[end].begin) {
      const std::size_t begin = best[end].begin;
      const bool unknown = best[end].id == unknown_;
      if (unknown && after_unknown)
        texts.back() = piece.substr(begin, end - begin + texts.back().size());
      else
        texts.push_back(piece.substr(begin, end - begin));
      after_unknown = unknown;
    }
    for (auto text = texts.rbegin(); text != texts.rend(); ++text)
      append(*text, ids);
  }

private:
  /// The last token of the best path to a position.
  struct Step {
    double score = 0;
    std::size_t begin = no_step;
    std::int32_t id = -1;
  };
  static constexpr std::size_t no_step
    = std::numeric_limits<std::size_t>::max();

  std::vector<Step> best_path(std::string_view piece) const {
    std::vector<Step> best(piece.size() + 1);
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t character = internal::code_point_at(piece, at).size;
      const auto offer = [&](std::size_t size, std::int32_t id, double score) {
        Step& step = best[at + size];
        const double sum = best[at].score + score;
        if (step.begin == no_step || sum > step.score)
          step = {sum, at, id};
      };
      bool is_known = false;
      trie_.each_prefix(
        piece.substr(at), [&](std::size_t size, std::int32_t id) {
          offer(size, id, scores_[static_cast<std::size_t>(id)]);
          is_known = is_known || size == character;
        });
      if (!is_known)
        offer(character, need_unknown(), least_ - unknown_penalty);
      at += character;
    }
    return best;
  }

  void append(std::string_view text, std::vector<std::int32_t>& ids) const {
    if (const auto id = vocabulary_.id(text); id >= 0)
      return ids.push_back(id);
    const auto id_of_byte
      = [&](char byte) { return byte_ids_[static_cast<std::uint8_t>(byte)]; };
    if (byte_fallback_ && std::ranges::all_of(text, [&](char byte) {
          return id_of_byte(byte) >= 0;
        }))
      for (const char byte : text)
        ids.push_back(id_of_byte(byte));
    else
      ids.push_back(need_unknown());
  }

  std::int32_t need_unknown() const {
    if (unknown_ < 0)
      throw ConfigError(Place{},
                        "a character that no token has, and no unk_id");
    return unknown_;
  }

  std::vector<double> scores_; ///< by id
  double least_;
  bool byte_fallback_;
  std::int32_t unknown_ = -1;
  TokenTrie trie_;
  std::array<std::int32_t, 256> byte_ids_{}; ///< -1: none
};

} // namespace

std::unique_ptr<Model> read_unigram(const internal::JsonAt& model) {
  return std::make_unique<Unigram>(model, Scored(model.at("vocab")));
}

} // namespace troupe::models::tokenizer
