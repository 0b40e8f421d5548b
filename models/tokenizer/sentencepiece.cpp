#include "models/tokenizer/sentencepiece.hpp"

#include "config/error.hpp"
#include "models/mapped_file.hpp"

#include <nlohmann/json.hpp>
#include <sentencepiece_processor.h>

#include <charconv>
#include <string>
#include <utility>

namespace troupe::models::tokenizer {

namespace {

using nlohmann::json;
using Processor = sentencepiece::SentencePieceProcessor;

json piece_ids(const Processor& processor) {
  json vocab = json::object();
  for (int id = 0; id < processor.GetPieceSize(); ++id)
    vocab[processor.IdToPiece(id)] = id;
  return vocab;
}

class SentencePieceModel : public Model {
public:
  SentencePieceModel(std::shared_ptr<const Processor> processor,
                     Vocabulary vocabulary)
    : Model(std::move(vocabulary)),
      processor_(std::move(processor)) {}

  void encode(std::string_view piece,
              std::vector<std::int32_t>& ids) const override {
    std::vector<int> found;
    const auto status
      = processor_->Encode({piece.data(), piece.size()}, &found);
    if (!status.ok())
      throw std::runtime_error(status.ToString());
    ids.insert(ids.end(), found.begin(), found.end());
  }

private:
  std::shared_ptr<const Processor> processor_;
};

/// Control pieces are special tokens; so are those that the config adds.
json added_tokens(const Processor& processor, const json& config) {
  json tokens = json::array();
  const auto add = [&](int id, const std::string& content, bool special) {
    tokens.push_back({{"id", id},
                      {"content", content},
                      {"special", special},
                      {"normalized", false}});
  };
  for (int id = 0; id < processor.GetPieceSize(); ++id)
    if (processor.IsControl(id) || processor.IsUnknown(id))
      add(id, processor.IdToPiece(id), true);
  const auto more = config.find("added_tokens_decoder");
  if (more == config.end() || !more->is_object())
    return tokens;
  for (const auto& [key, token] : more->items()) {
    int id = 0;
    const char* end = key.data() + key.size();
    const auto read = std::from_chars(key.data(), end, id);
    const bool number = read.ec == std::errc() && read.ptr == end;
    if (number && id < processor.GetPieceSize())
      continue;
    // who reads the list refuses what is wrong in it
    json entry = {{"special", true}, {"normalized", false}};
    if (token.is_object())
      entry.update(token);
    entry["id"] = number ? json(id) : json(key);
    tokens.push_back(entry);
  }
  return tokens;
}

bool adds(const json& config, const char* key, bool absent) {
  const auto flag = config.find(key);
  return flag != config.end() && flag->is_boolean() ? flag->get<bool>()
                                                    : absent;
}

json post_processor(const Processor& processor, const json& config) {
  json single = json::array();
  json ids = json::object();
  const auto token = [&](int id) {
    const std::string& piece = processor.IdToPiece(id);
    single.push_back({{"SpecialToken", {{"id", piece}, {"type_id", 0}}}});
    ids[piece] = {{"id", piece}, {"ids", {id}}};
  };
  if (processor.bos_id() >= 0 && adds(config, "add_bos_token", true))
    token(processor.bos_id());
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  if (processor.eos_id() >= 0 && adds(config, "add_eos_token", false))
    token(processor.eos_id());
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"special_tokens", ids}};
}

json decoder(const Processor& processor) {
  json steps = json::array();
  steps.push_back({{"type", "Replace"},
                   {"pattern", {{"String", "\xE2\x96\x81"}}},
                   {"content", " "}});
  steps.push_back({{"type", "ByteFallback"}});
  steps.push_back({{"type", "Fuse"}});
  // Whether the model puts a space before a text shows in any text.
  std::vector<std::string> pieces;
  const bool encodes = processor.Encode("a", &pieces).ok() && !pieces.empty();
  if (encodes && pieces.front().starts_with("\xE2\x96\x81"))
    steps.push_back(
      {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", steps}};
}

} // namespace

SentencePieceParts read_sentencepiece(const std::filesystem::path& path,
                                      const json& config) {
  const MappedFile file(path);
  auto processor = std::make_shared<Processor>();
  const auto status = processor->LoadFromSerializedProto(
    {file.text().data(), file.text().size()});
  if (!status.ok() || processor->GetPieceSize() == 0)
    throw ConfigError(Place{path.string(), 0},
                      "expected a SentencePiece model, got a file that "
                      "libsentencepiece refuses: "
                        + status.ToString());
  const json vocab = piece_ids(*processor);
  SentencePieceParts parts;
  parts.document = std::make_unique<json>(
    json{{"added_tokens", added_tokens(*processor, config)},
         {"post_processor", post_processor(*processor, config)},
         {"decoder", decoder(*processor)}});
  parts.model = std::make_unique<SentencePieceModel>(
    processor, Vocabulary(internal::JsonAt(vocab, path.string(), "pieces")));
  return parts;
}

} // namespace troupe::models::tokenizer
