#include "models/data/sample_reader.hpp"

#include "models/io/json_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace troupe::models::internal {

namespace {

std::string first_text(const RowFields& fields,
                       std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (fields.has(name))
      return fields.text_of_any(name);
  return "";
}

/// Returns the truth, which rows of verl have in reward_model.ground_truth.
std::string ground_truth_of(const RowFields& fields,
                            const nlohmann::ordered_json& row) {
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

namespace {

std::vector<std::uint8_t> mask_behind(std::size_t prompt, std::size_t tokens) {
  std::vector<std::uint8_t> mask(tokens, 1);
  std::fill_n(mask.begin(), std::min(prompt, tokens), 0);
  return mask;
}

} // namespace

std::vector<std::uint8_t> SampleTokens::mask() const {
  return loss_mask.empty() ? mask_behind(prompt_tokens, ids.size()) : loss_mask;
}

std::vector<std::uint8_t> SampleTokens::rejected_mask() const {
  return mask_behind(prompt_tokens, rejected.size());
}

SampleReader::SampleReader(const DatasetOptions& options, Tokenizer tokenizer)
  : options_(options),
    mapping_(options.fields, options.places, options.fields_word),
    tokenizer_(std::move(tokenizer)),
    chat_(tokenizer_) {
  const bool ends = options_.kind == DataKind::sft
                    || options_.kind == DataKind::preference
                    || options_.kind == DataKind::labelled;
  if (ends && tokenizer_.eos_id() < 0)
    throw ConfigError({.place = {tokenizer_.file(), 0},
                       .path = "eos_token",
                       .expected = "the token that ends a training sequence",
                       .got = "none",
                       .hint = "naming one in tokenizer_config.json"});
}

SampleTokens SampleReader::tokens(std::string_view line,
                                  const Place& place) const {
  const auto row = parse_ordered_json(line, place.file, place.line);
  const RowFields fields(mapping_, row, place);
  fields.check_mapped();
  SampleTokens tokens;
  try {
    tokens = read(fields);
  } catch (const ConfigError& error) {
    if (error.parts().place.line > 0)
      throw;
    // an error of the template, or texts that need a vocabulary: add the row's
    // place
    if (!tokenizer_.has_vocabulary())
      throw ConfigError(place, error.what());
    const bool asked
      = !chat_.has_template() && options_.chat == ChatUse::always;
    throw ConfigError(
      place, (asked ? "data.chat: true needs a chat template: " : "messages: ")
               + std::string(error.what()));
  }
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
  case DataKind::preference: {
    SampleTokens row = read_pair(fields);
    if (fields.is_mapped("margin"))
      row.margin = static_cast<float>(fields.number("margin"));
    return row;
  }
  case DataKind::labelled:
    return read_labelled(fields);
  case DataKind::score:
    return read_score(fields);
  }
  return {};
}

/// Returns true if `field` holds messages, or a text that is to become one.
bool SampleReader::is_chat(const RowFields& fields, const char* field) const {
  const bool list = fields.is_list(field);
  if (list && options_.chat == ChatUse::never)
    fields.expected(field, "text", "messages, which data.chat: false refuses");
  return list || (options_.chat == ChatUse::always && fields.has(field));
}

nlohmann::ordered_json SampleReader::messages(const RowFields& fields,
                                              const char* field,
                                              const char* role) const {
  return fields.is_text(field) ? one_message(role, fields.text(field))
                               : fields.messages(field);
}

/// Returns the start of a sequence with the tokenizer's initial tokens, without
/// an end token that its template adds, which would end the text at once.
std::vector<std::int32_t>
SampleReader::begin_ids(const std::string& text) const {
  auto ids = tokenizer_.encode(text);
  if (ids.empty() || ids.back() != tokenizer_.eos_id())
    return ids;
  const auto own = tokenizer_.encode(text, /*special=*/false);
  const bool ends_as_text
    = ids.size() >= own.size()
      && std::equal(own.rbegin(), own.rend(), ids.rbegin());
  if (!ends_as_text)
    ids.pop_back();
  return ids;
}

void SampleReader::append(std::vector<std::int32_t>& ids,
                          const std::string& text, bool end) const {
  const auto more = tokenizer_.encode(text, /*special=*/false);
  ids.insert(ids.end(), more.begin(), more.end());
  if (end)
    ids.push_back(tokenizer_.eos_id());
}

SampleTokens SampleReader::read_prompt(const RowFields& fields) const {
  SampleTokens row;
  if (fields.has("prompt_ids")) {
    row.ids = fields.ids("prompt_ids", tokenizer_.num_ids());
  } else if (!fields.has("prompt") && is_chat(fields, "messages")) {
    row.ids = chat_.prompt_ids(fields.messages("messages"));
  } else if (is_chat(fields, "prompt")) {
    row.ids = chat_.prompt_ids(messages(fields, "prompt", "user"));
  } else {
    row.ids = begin_ids(fields.text("prompt"));
  }
  row.prompt_tokens = row.ids.size();
  return row;
}

/// Reads `messages`, or `prompt` and `completion` as one conversation.
SampleTokens SampleReader::read_conversation(const RowFields& fields) const {
  SampleTokens row;
  nlohmann::ordered_json all;
  std::size_t prompt = 0; // in messages
  if (fields.has("messages") && options_.kind != DataKind::labelled) {
    all = fields.messages("messages");
  } else {
    all = messages(fields, "prompt", "user");
    row.prompt_tokens = chat_.prompt_ids(all).size();
    prompt = all.size();
    for (const auto& message : messages(fields, "completion", "assistant"))
      all.push_back(message);
  }
  ChatTokens chat = chat_.conversation(all);
  row.ids = std::move(chat.ids);
  row.loss_mask = std::move(chat.loss_mask);
  std::fill_n(row.loss_mask.begin(),
              std::min(row.prompt_tokens, row.loss_mask.size()), 0);
  const auto first = std::ranges::find(row.loss_mask, 1);
  if (first == row.loss_mask.end())
    fields.expected(fields.has("messages") ? "messages" : "completion",
                    "a message of the assistant", "none");
  row.prompt_tokens = static_cast<std::size_t>(first - row.loss_mask.begin());
  row.unlearned_turns = static_cast<std::uint64_t>(std::ranges::count_if(
    chat.changed, [&](std::size_t message) { return message >= prompt; }));
  return row;
}

SampleTokens SampleReader::read_sft(const RowFields& fields) const {
  SampleTokens row;
  if (fields.has("messages") ? is_chat(fields, "messages")
                             : is_chat(fields, "prompt"))
    return read_conversation(fields);
  if (fields.is_mapped("text")
      || (fields.has("text") && !fields.has("completion"))) {
    row.ids = begin_ids(fields.text("text"));
    row.ids.push_back(tokenizer_.eos_id());
    row.prompt_tokens = 1; // the first token is not predicted
    return row;
  }
  row.ids = begin_ids(fields.text("prompt"));
  row.prompt_tokens = std::max<std::size_t>(row.ids.size(), 1);
  append(row.ids, fields.text("completion"), /*end=*/true);
  return row;
}

/// Reads chosen and rejected, which are whole conversations or continue the
/// prompt.
SampleTokens SampleReader::read_chat_pair(const RowFields& fields) const {
  SampleTokens row;
  auto prompt = nlohmann::ordered_json::array();
  if (fields.has("prompt")) {
    prompt = messages(fields, "prompt", "user");
    row.prompt_tokens = chat_.prompt_ids(prompt).size();
  }
  const auto with_prompt = [&](const char* field) {
    auto all = prompt;
    for (const auto& message : messages(fields, field, "assistant"))
      all.push_back(message);
    return all;
  };
  const auto chosen = with_prompt("chosen");
  const auto rejected = with_prompt("rejected");
  const auto apart = std::ranges::mismatch(chosen, rejected).in1;
  const auto shared = static_cast<std::size_t>(apart - chosen.begin());
  const auto ids_of = [&](const char* field, const auto& all) {
    ChatTokens chat = chat_.conversation(all);
    // the compared turn must be exactly what the model generates
    if (!chat.changed.empty() && chat.changed.back() >= shared)
      fields.expected(field, "turns that the chat template keeps as they are",
                      "message " + std::to_string(chat.changed.back())
                        + ", which it changes once others follow");
    return std::move(chat.ids);
  };
  row.ids = ids_of("chosen", chosen);
  row.rejected = ids_of("rejected", rejected);
  return row;
}

SampleTokens SampleReader::read_pair(const RowFields& fields) const {
  SampleTokens row;
  if (is_chat(fields, "prompt") || fields.is_list("chosen"))
    return read_chat_pair(fields);
  if (!fields.has("prompt")) {
    row.ids = begin_ids(fields.text("chosen"));
    row.ids.push_back(tokenizer_.eos_id());
    row.rejected = begin_ids(fields.text("rejected"));
    row.rejected.push_back(tokenizer_.eos_id());
    return row;
  }
  row.ids = begin_ids(fields.text("prompt"));
  row.prompt_tokens = row.ids.size();
  row.rejected = row.ids;
  append(row.ids, fields.text("chosen"), /*end=*/true);
  append(row.rejected, fields.text("rejected"), /*end=*/true);
  return row;
}

/// Reads a prompt and its completion, as for sft, with a label.
SampleTokens SampleReader::read_labelled(const RowFields& fields) const {
  for (const char* field : {"prompt", "completion"})
    if (!fields.has(field))
      fields.text(field); // throws the error
  SampleTokens row
    = is_chat(fields, "prompt") ? read_conversation(fields) : SampleTokens{};
  if (row.ids.empty()) {
    row.ids = begin_ids(fields.text("prompt"));
    row.prompt_tokens = std::max<std::size_t>(row.ids.size(), 1);
    append(row.ids, fields.text("completion"), /*end=*/true);
  }
  row.desirable = fields.boolean("label");
  return row;
}

SampleTokens SampleReader::read_score(const RowFields& fields) const {
  SampleTokens row;
  if (fields.has("ids")) {
    row.ids = fields.ids("ids", tokenizer_.num_ids());
  } else if (fields.has("text") && !fields.has("response")
             && !fields.has("response_ids")) {
    row.ids = begin_ids(fields.text("text"));
  } else if (fields.has("messages") && !fields.has("response")
             && !fields.has("response_ids")) {
    if (is_chat(fields, "messages"))
      return read_conversation(fields);
    fields.messages("messages"); // throws the error
  } else {
    return read_response(fields);
  }
  row.prompt_tokens = 1; // the first token is not predicted
  return row;
}

/// Reads a prompt and its response with the tokens of a rollout: those that
/// were generated (`response_ids`), else those of the text and, for a complete
/// response, the end token - once, even if the text spells it out.
SampleTokens SampleReader::read_response(const RowFields& fields) const {
  SampleTokens row = read_prompt(fields);
  row.prompt_tokens = std::max<std::size_t>(row.ids.size(), 1);
  if (fields.has("response_ids")) {
    const auto ids = fields.ids("response_ids", tokenizer_.num_ids());
    row.ids.insert(row.ids.end(), ids.begin(), ids.end());
    return row;
  }
  append(row.ids, fields.text("response"), /*end=*/false);
  const auto reason = fields.text_of_any("finish_reason");
  const bool whole = reason.empty() ? options_.ends_responses : reason == "eos";
  if (whole && tokenizer_.eos_id() >= 0
      && (row.ids.empty() || row.ids.back() != tokenizer_.eos_id()))
    row.ids.push_back(tokenizer_.eos_id());
  return row;
}

/// Cuts overlong rows: prompts keep their end, which the response continues;
/// sequences keep their start.
void SampleReader::limit(SampleTokens& row) const {
  const auto most = static_cast<std::size_t>(options_.max_tokens);
  const std::size_t longest = std::max(row.ids.size(), row.rejected.size());
  if (most == 0 || longest <= most)
    return;
  row.overlong = true;
  const bool is_prompt = options_.kind == DataKind::prompts;
  // a sequence whose prompt alone fills the limit has nothing left to train on
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
  row.loss_mask.resize(std::min(row.loss_mask.size(), most));
  row.rejected.resize(std::min(row.rejected.size(), most));
}

/// Returns the rendered text if the prompt is messages.
std::string SampleReader::prompt_text(const RowFields& fields) const {
  const bool prompt = fields.has("prompt");
  const bool of_kind = prompt || options_.kind == DataKind::prompts;
  const char* field = prompt ? "prompt" : "messages";
  if (of_kind && fields.has(field) && is_chat(fields, field))
    return chat_.prompt_text(messages(fields, field, "user"));
  return fields.text_of_any("prompt");
}

RowText SampleReader::text(std::string_view line, const Place& place) const {
  const auto row = parse_ordered_json(line, place.file, place.line);
  const RowFields fields(mapping_, row, place);
  RowText text;
  text.line = place.line;
  text.prompt = prompt_text(fields);
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

std::optional<std::string> SampleReader::field(std::string_view line,
                                               const Place& place,
                                               const std::string& name) const {
  const auto row = parse_ordered_json(line, place.file, place.line);
  const RowFields fields(mapping_, row, place);
  if (name == "prompt")
    return prompt_text(fields);
  if (name == "ground_truth")
    if (auto text = ground_truth_of(fields, row); !text.empty())
      return text;
  if (!fields.has(name))
    return std::nullopt;
  return fields.text_of_any(name);
}

} // namespace troupe::models::internal
