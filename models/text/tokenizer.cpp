#include "models/text/tokenizer.hpp"

#include "config/base/error.hpp"
#include "models/io/json_at.hpp"
#include "models/io/json_text.hpp"
#include "models/io/mapped_file.hpp"
#include "models/io/utf8.hpp"
#include "models/text/tokenizer/added_tokens.hpp"
#include "models/text/tokenizer/decoder.hpp"
#include "models/text/tokenizer/model.hpp"
#include "models/text/tokenizer/normalizer.hpp"
#include "models/text/tokenizer/post_processor.hpp"
#include "models/text/tokenizer/pre_tokenizer.hpp"
#include "models/text/tokenizer/sentencepiece.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe::models {

namespace tokenizer {

struct Parts {
  std::string file;
  Normalizer normalizer;
  AddedTokens added;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<Model> model; ///< null: ids without texts
  PostProcessor post_processor;
  Decoder decoder;
  std::int32_t bos = -1, eos = -1, pad = -1, unk = -1;
  std::optional<std::string> chat_template;
  std::string chat_template_file; ///< file that contains it
  std::int32_t model_ids = 0;     ///< 0: no model in the folder
  std::vector<std::int32_t> ends; ///< named by the model's files

  const Vocabulary& vocabulary() const {
    static const Vocabulary none;
    return model != nullptr ? model->vocabulary() : none;
  }
  const std::string* token(std::int32_t id) const {
    const AddedToken* added_token = added.find(id);
    return added_token != nullptr ? &added_token->content
                                  : vocabulary().token(id);
  }
  /// Returns the text of a token that the decoder reads.
  const std::string* decoded(std::int32_t id) const {
    const AddedToken* added_token = added.find(id);
    return added_token != nullptr ? &added_token->decoded
                                  : vocabulary().token(id);
  }
  std::int32_t id(std::string_view token) const {
    const std::int32_t added_id = added.id(token);
    return added_id >= 0 ? added_id : vocabulary().id(token);
  }
};

} // namespace tokenizer

namespace {

using internal::JsonAt;
using nlohmann::json;
using tokenizer::Parts;

/// Returns the value of `key`, or null if the file has none.
JsonAt part_of(const JsonAt& document, const std::string& key) {
  static const json nothing;
  if (!document.is_object())
    document.expected("an object");
  return document.has(key) ? document.at(key)
                           : JsonAt(nothing, document.file(), key);
}

std::int32_t named_token(const JsonAt& config, const std::string& key,
                         const Parts& parts) {
  return config.has(key) ? parts.id(tokenizer::token_text(config.at(key))) : -1;
}

void read_special_names(const JsonAt& config, Parts& parts) {
  const auto read = [&](const std::string& key, std::int32_t& id) {
    if (id < 0)
      id = named_token(config, key, parts);
  };
  read("bos_token", parts.bos);
  read("eos_token", parts.eos);
  read("pad_token", parts.pad);
  read("unk_token", parts.unk);
}

/// Reads the chat template; several may be given by name, "default" is the one
/// for chats.
void read_chat_template(const JsonAt& config, Parts& parts) {
  if (!config.has("chat_template"))
    return;
  parts.chat_template_file = config.file();
  const JsonAt given = config.at("chat_template");
  if (!given.is_list()) {
    parts.chat_template = given.text();
    return;
  }
  for (std::size_t i = 0; i < given.size(); ++i)
    if (given.at(i).at("name").text() == "default")
      parts.chat_template = given.at(i).at("template").text();
}

/// Reads a document; `model` is for one that has none.
std::shared_ptr<Parts> read_parts(const json& document, const std::string& file,
                                  std::unique_ptr<tokenizer::Model> model
                                  = nullptr) {
  const JsonAt root(document, file);
  auto parts = std::make_shared<Parts>();
  parts->file = file;
  parts->normalizer = tokenizer::Normalizer(part_of(root, "normalizer"));
  parts->added
    = tokenizer::AddedTokens(part_of(root, "added_tokens"), parts->normalizer);
  parts->pre_tokenizer
    = tokenizer::PreTokenizer(part_of(root, "pre_tokenizer"));
  parts->model = model != nullptr
                   ? std::move(model)
                   : tokenizer::read_model(root.at("model"),
                                           parts->pre_tokenizer.byte_level());
  parts->post_processor
    = tokenizer::PostProcessor(part_of(root, "post_processor"));
  parts->decoder = tokenizer::Decoder(part_of(root, "decoder"));
  return parts;
}

void read_config(const json& document, const std::string& file, Parts& parts) {
  const JsonAt config(document, file);
  if (!config.is_object())
    config.expected("an object");
  read_special_names(config, parts);
  read_chat_template(config, parts);
}

std::int32_t read_model_ids(const std::filesystem::path& config) {
  if (!std::filesystem::exists(config))
    return 0;
  const json document = internal::read_json(config);
  const JsonAt root(document, config.string());
  return root.is_object() && root.has("vocab_size") ? static_cast<std::int32_t>(
           root.at("vocab_size").integer(1, INT32_MAX))
                                                    : 0;
}

[[noreturn]] void no_tokenizer(const std::string& folder) {
  throw ConfigError(
    {.place = {folder, 0},
     .path = "",
     .expected = "a tokenizer.json or a tokenizer.model in the folder",
     .got = "none",
     .hint = "the folder of a Hugging Face model with its tokenizer"});
}

/// Reads tokenizer.json, or else tokenizer.model.
std::shared_ptr<Parts> read_folder(const std::filesystem::path& folder) {
  const auto path = folder / "tokenizer.json";
  const auto pieces = folder / "tokenizer.model";
  if (std::filesystem::exists(path))
    return read_parts(internal::read_json(path), path.string());
  if (!std::filesystem::exists(pieces))
    no_tokenizer(folder.string());
  auto read = tokenizer::read_sentencepiece(folder);
  return read_parts(*read.document, pieces.string(), std::move(read.model));
}

/// Encodes one section of text that contains no added tokens.
void encode_text(const Parts& parts, std::string text, bool at_start,
                 std::vector<std::int32_t>& ids) {
  tokenizer::Pieces pieces{std::move(text), {}, at_start};
  pieces.ranges.emplace_back(0, pieces.text.size());
  parts.pre_tokenizer.apply(pieces);
  for (const auto& [begin, end] : pieces.ranges)
    parts.model->encode(
      std::string_view(pieces.text).substr(begin, end - begin), ids);
}

void encode_normalized(const Parts& parts, std::string_view section,
                       bool at_start, std::vector<std::int32_t>& ids) {
  std::string text = parts.normalizer.apply(std::string(section));
  if (text.empty())
    return;
  if (!parts.added.any(/*normalized=*/true))
    return encode_text(parts, std::move(text), at_start, ids);
  for (const auto& part : parts.added.split(text, /*normalized=*/true)) {
    if (part.id >= 0)
      ids.push_back(part.id);
    else
      encode_text(parts, text.substr(part.begin, part.end - part.begin),
                  at_start && part.begin == 0, ids);
  }
}

std::vector<std::int32_t> encode_all(const Parts& parts,
                                     std::string_view text) {
  std::string repaired;
  if (internal::first_invalid_utf8(text) != std::string_view::npos) {
    repaired = internal::replace_invalid_utf8(text);
    text = repaired;
  }
  std::vector<std::int32_t> ids;
  ids.reserve(text.size() / 4 + 4);
  for (const auto& section : parts.added.split(text, /*normalized=*/false)) {
    if (section.id >= 0)
      ids.push_back(section.id);
    else
      encode_normalized(parts,
                        text.substr(section.begin, section.end - section.begin),
                        section.begin == 0, ids);
  }
  return ids;
}

} // namespace

Tokenizer::Tokenizer(std::shared_ptr<const tokenizer::Parts> parts)
  : parts_(std::move(parts)) {}

Tokenizer Tokenizer::load(const std::filesystem::path& folder) {
  auto parts = read_folder(folder);
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"})
    if (const auto config = folder / name; std::filesystem::exists(config))
      read_config(internal::read_json(config), config.string(), *parts);
  if (const auto jinja = folder / "chat_template.jinja";
      std::filesystem::exists(jinja)) {
    parts->chat_template = std::string(MappedFile(jinja).text());
    parts->chat_template_file = jinja.string();
  }
  parts->model_ids = read_model_ids(folder / "config.json");
  parts->ends = read_end_tokens(folder);
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::load_if_any(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / "tokenizer.json")
      || std::filesystem::exists(folder / "tokenizer.model"))
    return load(folder);
  auto parts = std::make_shared<Parts>();
  parts->file = folder.string();
  parts->model_ids
    = static_cast<std::int32_t>(read_model_shape(folder).vocab_size);
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::parse(std::string_view tokenizer_json,
                           std::string_view config_json,
                           const std::string& file) {
  auto parts = read_parts(internal::parse_json(tokenizer_json, file), file);
  if (!config_json.empty())
    read_config(internal::parse_json(config_json, file + " (config)"),
                file + " (config)", *parts);
  return Tokenizer(std::move(parts));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text,
                                            bool special) const {
  need_vocabulary();
  try {
    auto ids = encode_all(*parts_, text);
    return special ? parts_->post_processor.apply(std::move(ids)) : ids;
  } catch (const std::runtime_error& error) {
    // a pattern of the file that backtracks without end
    throw ConfigError(Place{parts_->file, 0},
                      std::string("cannot encode a text: ") + error.what());
  }
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids,
                              bool skip_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) {
    const std::string* token = parts_->decoded(id);
    if (token != nullptr && !(skip_special && is_special(id)))
      tokens.push_back(*token);
  }
  return parts_->decoder.apply(std::move(tokens));
}

bool Tokenizer::has_vocabulary() const {
  return parts_->model != nullptr;
}

void Tokenizer::need_vocabulary() const {
  if (!has_vocabulary())
    no_tokenizer(parts_->file);
}

std::int32_t Tokenizer::vocab_size() const {
  const auto& added = parts_->added.tokens();
  const std::int32_t end = added.empty() ? 0 : added.rbegin()->first + 1;
  return std::max(end, parts_->vocabulary().end_id());
}

std::int32_t Tokenizer::num_ids() const {
  return std::max(vocab_size(), parts_->model_ids);
}

std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const {
  const std::int32_t id = parts_->id(token);
  return id >= 0 ? std::optional(id) : std::nullopt;
}

const std::string* Tokenizer::token_of(std::int32_t id) const {
  return parts_->token(id);
}

bool Tokenizer::is_special(std::int32_t id) const {
  const auto* token = parts_->added.find(id);
  return token != nullptr && token->special;
}

bool Tokenizer::ends_response(std::int32_t id) const {
  return id == eos_id() || is_special(id)
         || std::ranges::find(parts_->ends, id) != parts_->ends.end();
}

std::int32_t Tokenizer::bos_id() const {
  return parts_->bos;
}

std::int32_t Tokenizer::eos_id() const {
  return parts_->eos;
}

std::int32_t Tokenizer::pad_id() const {
  return parts_->pad;
}

std::int32_t Tokenizer::unk_id() const {
  return parts_->unk;
}

const std::optional<std::string>& Tokenizer::chat_template() const {
  return parts_->chat_template;
}

const std::string& Tokenizer::chat_template_file() const {
  return parts_->chat_template_file;
}

const std::string& Tokenizer::file() const {
  return parts_->file;
}

void Tokenizer::check_fits(const ModelShape& shape,
                           const std::string& model) const {
  if (vocab_size() <= shape.vocab_size)
    return;
  throw ConfigError({.place = {parts_->file, 0},
                     .path = "",
                     .expected = "ids below the model's vocabulary of "
                                 + std::to_string(shape.vocab_size) + " ("
                                 + model + ")",
                     .got = "ids up to " + std::to_string(vocab_size() - 1),
                     .hint = "the tokenizer that belongs to the model"});
}

TextStream::TextStream(Tokenizer tokenizer, bool skip_special)
  : tokenizer_(std::move(tokenizer)),
    skip_special_(skip_special) {}

std::string TextStream::rest() {
  // decoders depend on neighbors (a first space is dropped), so the new text is
  // the difference to the text of the context alone
  const std::string before
    = tokenizer_.decode(std::span(ids_).first(shown_), skip_special_);
  const std::string after = tokenizer_.decode(ids_, skip_special_);
  return after.size() > before.size() ? after.substr(before.size()) : "";
}

std::string TextStream::push(std::int32_t id) {
  ids_.push_back(id);
  std::string text = rest();
  if (text.empty() || text.ends_with("\xEF\xBF\xBD"))
    return ""; // perhaps the first bytes of a character
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(shown_));
  shown_ = ids_.size();
  return text;
}

std::string TextStream::finish() {
  std::string text = rest();
  ids_.clear();
  shown_ = 0;
  return text;
}

} // namespace troupe::models
