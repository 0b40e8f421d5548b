#include "models/text/tokenizer/sentencepiece.hpp"

#include "config/base/error.hpp"
#include "models/io/json_text.hpp"
#include "models/io/mapped_file.hpp"
#include "models/text/tokenizer/added_tokens.hpp"

#include <nlohmann/json.hpp>
#include <sentencepiece_processor.h>

#include <charconv>
#include <set>
#include <string>
#include <utility>

namespace troupe::models::tokenizer {

namespace {

namespace fs = std::filesystem;
using internal::JsonAt;
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

/// Returns an empty object if there is no such file.
json read_if_there(const fs::path& file) {
  return fs::exists(file) ? internal::read_json(file) : json::object();
}

/// Returns the tokens of tokenizer_config.json, by id.
json tokens_of_config(const json& by_id) {
  json tokens = json::array();
  for (const auto& [key, token] : by_id.items()) {
    int id = 0;
    const char* end = key.data() + key.size();
    const auto read = std::from_chars(key.data(), end, id);
    const bool number = read.ec == std::errc() && read.ptr == end;
    // the reader of the list reports mistakes in it
    json entry = {{"special", true}, {"normalized", false}};
    if (token.is_object())
      entry.update(token);
    entry["id"] = number ? json(id) : json(key);
    tokens.push_back(entry);
  }
  return tokens;
}

/// Adds the texts of the tokens that a file marks as special.
void read_special_texts(const JsonAt& file, std::set<std::string>& special) {
  for (const char* key : {"bos_token", "eos_token", "unk_token", "pad_token"})
    if (file.has(key))
      special.insert(token_text(file.at(key)));
  if (!file.has("additional_special_tokens"))
    return;
  const JsonAt more = file.at("additional_special_tokens");
  for (std::size_t i = 0; i < more.size(); ++i)
    special.insert(token_text(more.at(i)));
}

bool is_control(const Processor& processor, std::int64_t id) {
  if (id < 0 || id >= processor.GetPieceSize())
    return false;
  const int piece = static_cast<int>(id);
  return processor.IsControl(piece) || processor.IsUnknown(piece);
}

/// Returns the tokens of added_tokens.json in older folders, which has ids by
/// texts; other files name the special ones.
json tokens_of_list(const fs::path& folder, const Processor& processor) {
  std::set<std::string> special;
  for (const char* name :
       {"tokenizer_config.json", "special_tokens_map.json"}) {
    const json names = read_if_there(folder / name);
    read_special_texts(JsonAt(names, (folder / name).string()), special);
  }
  json tokens = json::array();
  const fs::path file = folder / "added_tokens.json";
  const json list = read_if_there(file);
  JsonAt(list, file.string())
    .for_each([&](const std::string& content, const JsonAt& value) {
      const auto id = value.integer(0, largest_added_id);
      const bool is_special
        = special.contains(content) || is_control(processor, id);
      tokens.push_back({{"id", id},
                        {"content", content},
                        {"special", is_special},
                        {"normalized", !is_special}});
    });
  return tokens;
}

/// Returns the listed tokens and the control pieces that are not listed.
json added_tokens(const Processor& processor, json listed) {
  std::set<json> taken;
  for (const json& token : listed)
    taken.insert(token.at("id"));
  for (int id = 0; id < processor.GetPieceSize(); ++id)
    if (is_control(processor, id) && !taken.contains(id))
      listed.push_back({{"id", id},
                        {"content", processor.IdToPiece(id)},
                        {"special", true},
                        {"normalized", false}});
  return listed;
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
  // encoding any text shows whether the model prepends a space
  std::vector<std::string> pieces;
  const bool encodes = processor.Encode("a", &pieces).ok() && !pieces.empty();
  if (encodes && pieces.front().starts_with("\xE2\x96\x81"))
    steps.push_back(
      {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", steps}};
}

} // namespace

SentencePieceParts read_sentencepiece(const fs::path& folder) {
  const fs::path path = folder / "tokenizer.model";
  const MappedFile file(path);
  auto processor = std::make_shared<Processor>();
  const auto status = processor->LoadFromSerializedProto(
    {file.text().data(), file.text().size()});
  if (!status.ok() || processor->GetPieceSize() == 0)
    throw ConfigError(Place{path.string(), 0},
                      "expected a SentencePiece model, got a file that "
                      "libsentencepiece refuses: "
                        + status.ToString());
  const json config = read_if_there(folder / "tokenizer_config.json");
  const auto by_id = config.find("added_tokens_decoder");
  json listed = by_id != config.end() && by_id->is_object()
                  ? tokens_of_config(*by_id)
                  : tokens_of_list(folder, *processor);
  const json vocab = piece_ids(*processor);
  SentencePieceParts parts;
  parts.document = std::make_unique<json>(
    json{{"added_tokens", added_tokens(*processor, std::move(listed))},
         {"post_processor", post_processor(*processor, config)},
         {"decoder", decoder(*processor)}});
  parts.model = std::make_unique<SentencePieceModel>(
    processor, Vocabulary(JsonAt(vocab, path.string(), "pieces")));
  return parts;
}

} // namespace troupe::models::tokenizer
