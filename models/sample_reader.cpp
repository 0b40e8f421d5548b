#include "models/internal/sample_reader.hpp"

#include "models/internal/json_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace troupe::models::internal {

namespace {

[[noreturn]] void needs_chat_template(Place place, const std::string& path) {
  throw ConfigError(std::move(place),
                    path
                      + ": chat templates cannot be rendered yet; try a string "
                        "prompt, for instance with data.fields");
}

Place place_of_setting(const DatasetOptions& options, const std::string& key) {
  const auto it = options.places.find(key);
  return it == options.places.end() ? Place{} : it->second;
}

std::string first_text(const RowFields& fields,
                       std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (fields.has(name))
      return fields.text_of_any(name);
  return "";
}

/// verl's rows keep the truth in reward_model.ground_truth.
std::string ground_truth_of(const RowFields& fields,
                            const nlohmann::json& row) {
  if (fields.has("ground_truth"))
    return fields.text_of_any("ground_truth");
  const auto model = row.find("reward_model");
  if (model == row.end() || !model->is_object())
    return "";
  const auto truth = model->find("ground_truth");
  if (truth == model->end() || truth->is_null())
    return "";
  return truth->is_string() ? truth->get<std::string>() : truth->dump();
}

} // namespace

SampleReader::SampleReader(const DatasetOptions& options, Tokenizer tokenizer)
  : options_(options),
    mapping_(options.fields, options.places),
    tokenizer_(std::move(tokenizer)) {
  if (options_.chat)
    needs_chat_template(place_of_setting(options_, "data.chat"), "data.chat");
  const bool ends
    = options_.kind == DataKind::sft || options_.kind == DataKind::preference;
  if (ends && tokenizer_.eos_id() < 0)
    throw ConfigError(Place{tokenizer_.file(), 0},
                      "the tokenizer names no eos_token, which must end each "
                      "training sequence; try naming one in "
                      "tokenizer_config.json");
}

SampleTokens SampleReader::tokens(std::string_view line,
                                  const Place& place) const {
  const nlohmann::json row = parse_json(line, place.file, place.line);
  const RowFields fields(mapping_, row, place);
  fields.check_mapped();
  SampleTokens tokens = read(fields);
  if (tokens.ids.empty())
    fields.expected(options_.kind == DataKind::prompts ? "prompt" : "text",
                    "at least one token", "none");
  limit(tokens);
  return tokens;
}

SampleTokens SampleReader::read(const RowFields& fields) const {
  switch (options_.kind) {
  case DataKind::prompts:
    return read_prompt(fields);
  case DataKind::sft:
    return read_sft(fields);
  case DataKind::preference:
    return read_pair(fields);
  case DataKind::score:
    return read_score(fields);
  }
  return {};
}

void SampleReader::refuse_messages(const RowFields& fields,
                                   const char* field) const {
  const bool list = fields.has(field) && !fields.is_text(field);
  if (!list && (fields.has(field) || !fields.has("messages")))
    return;
  fields.expected(list ? field : "messages", "text",
                  "messages (chat templates cannot be rendered yet)");
}

/// The start of a sequence with the tokenizer's own first tokens; an end token
/// that its template adds would end the text before it has begun.
std::vector<std::int32_t>
SampleReader::begin_ids(const std::string& text) const {
  auto ids = tokenizer_.encode(text);
  if (!ids.empty() && ids.back() == tokenizer_.eos_id()
      && ids.size() > tokenizer_.encode(text, false).size())
    ids.pop_back();
  return ids;
}

void SampleReader::append(std::vector<std::int32_t>& ids,
                          const std::string& text, bool end) const {
  const auto more = tokenizer_.encode(text, false);
  ids.insert(ids.end(), more.begin(), more.end());
  if (end)
    ids.push_back(tokenizer_.eos_id());
}

SampleTokens SampleReader::read_prompt(const RowFields& fields) const {
  SampleTokens row;
  if (fields.has("prompt_ids")) {
    row.ids = fields.ids("prompt_ids", tokenizer_.vocab_size());
  } else {
    refuse_messages(fields, "prompt");
    row.ids = begin_ids(fields.text("prompt"));
  }
  row.prompt_tokens = row.ids.size();
  return row;
}

SampleTokens SampleReader::read_sft(const RowFields& fields) const {
  SampleTokens row;
  if (fields.is_mapped("text")
      || (fields.has("text") && !fields.has("completion"))) {
    row.ids = begin_ids(fields.text("text"));
    row.ids.push_back(tokenizer_.eos_id());
    row.prompt_tokens = 1; // nothing predicts the first token
    return row;
  }
  refuse_messages(fields, "prompt");
  row.ids = begin_ids(fields.text("prompt"));
  row.prompt_tokens = std::max<std::size_t>(row.ids.size(), 1);
  append(row.ids, fields.text("completion"), true);
  return row;
}

SampleTokens SampleReader::read_pair(const RowFields& fields) const {
  SampleTokens row;
  if (!fields.has("prompt")) {
    refuse_messages(fields, "chosen");
    row.ids = begin_ids(fields.text("chosen"));
    row.ids.push_back(tokenizer_.eos_id());
    row.rejected = begin_ids(fields.text("rejected"));
    row.rejected.push_back(tokenizer_.eos_id());
    return row;
  }
  refuse_messages(fields, "prompt");
  row.ids = begin_ids(fields.text("prompt"));
  row.prompt_tokens = row.ids.size();
  row.rejected = row.ids;
  append(row.ids, fields.text("chosen"), true);
  append(row.rejected, fields.text("rejected"), true);
  return row;
}

SampleTokens SampleReader::read_score(const RowFields& fields) const {
  SampleTokens row;
  if (fields.has("ids")) {
    row.ids = fields.ids("ids", tokenizer_.vocab_size());
  } else if (fields.has("text") && !fields.has("response")) {
    row.ids = begin_ids(fields.text("text"));
  } else {
    refuse_messages(fields, "prompt");
    row.ids = begin_ids(fields.text("prompt"));
    row.prompt_tokens = std::max<std::size_t>(row.ids.size(), 1);
    append(row.ids, fields.text("response"), false);
    return row;
  }
  row.prompt_tokens = 1; // nothing predicts the first token
  return row;
}

/// Prompts keep their end, which the answer continues; sequences their start.
void SampleReader::limit(SampleTokens& row) const {
  const auto most = static_cast<std::size_t>(options_.max_tokens);
  const std::size_t longest = std::max(row.ids.size(), row.rejected.size());
  if (most == 0 || longest <= most)
    return;
  row.overlong = true;
  const bool is_prompt = options_.kind == DataKind::prompts;
  // A sequence whose prompt alone fills the limit has nothing left to learn.
  row.truncated = options_.overlong == "truncate"
                  && (is_prompt || row.prompt_tokens < most);
  if (!row.truncated)
    return;
  if (is_prompt) {
    row.ids.erase(row.ids.begin(),
                  row.ids.end() - static_cast<std::ptrdiff_t>(most));
    row.prompt_tokens = most;
    return;
  }
  row.ids.resize(std::min(row.ids.size(), most));
  row.rejected.resize(std::min(row.rejected.size(), most));
}

RowText SampleReader::text(std::string_view line, const Place& place) const {
  const nlohmann::json row = parse_json(line, place.file, place.line);
  const RowFields fields(mapping_, row, place);
  RowText text;
  text.line = place.line;
  text.prompt = fields.text_of_any("prompt");
  if (options_.kind != DataKind::prompts)
    text.response
      = first_text(fields, {"completion", "text", "chosen", "response"});
  text.rejected = fields.text_of_any("rejected");
  text.ground_truth = ground_truth_of(fields, row);
  text.data_source = fields.text_of_any("data_source");
  text.extra_info = fields.text_of_any("extra_info");
  text.json = line;
  return text;
}

} // namespace troupe::models::internal
