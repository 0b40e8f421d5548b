#include "models/text/tokenizer/model.hpp"

#include "models/io/utf8.hpp"
#include "models/text/tokenizer/byte_level.hpp"

namespace troupe::models::tokenizer {

namespace {

class WordLevel : public Model {
public:
  WordLevel(const internal::JsonAt& model, bool byte_level)
    : Model(Vocabulary(model.at("vocab"))),
      byte_level_(byte_level),
      unknown_(vocabulary_.id(model.text_or("unk_token", "<unk>"))) {}

  void encode(std::string_view piece,
              std::vector<std::int32_t>& ids) const override {
    std::string shown(piece);
    if (byte_level_) {
      shown.clear();
      for (const char byte : piece)
        internal::append_utf8(shown,
                              byte_level_char(static_cast<std::uint8_t>(byte)));
    }
    const std::int32_t id = vocabulary_.id(shown);
    if (id >= 0 || unknown_ >= 0)
      ids.push_back(id >= 0 ? id : unknown_);
  }

private:
  bool byte_level_;
  std::int32_t unknown_; ///< -1: unknown words are dropped
};

} // namespace

std::unique_ptr<Model> read_model(const internal::JsonAt& model,
                                  bool byte_level) {
  // files of the first versions have no type; with merges they are BPE
  const std::string type
    = model.text_or("type", model.has("merges") ? "BPE" : "WordLevel");
  if (type == "BPE")
    return read_bpe(model, byte_level);
  if (byte_level && (type == "Unigram" || type == "WordPiece"))
    model.at("type").unsupported(type + " over bytes");
  if (type == "Unigram")
    return read_unigram(model);
  if (type == "WordPiece")
    return read_word_piece(model);
  if (type == "WordLevel")
    return std::make_unique<WordLevel>(model, byte_level);
  model.at("type").unsupported("the tokenizer model '" + type + "'");
}

} // namespace troupe::models::tokenizer
