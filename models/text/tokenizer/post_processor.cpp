#include "models/text/tokenizer/post_processor.hpp"

namespace troupe::models::tokenizer {

namespace {

void append_special(const internal::JsonAt& specials, const std::string& name,
                    std::vector<std::int32_t>& ids) {
  const internal::JsonAt list = specials.at(name).at("ids");
  for (std::size_t i = 0; i < list.size(); ++i)
    ids.push_back(static_cast<std::int32_t>(list.at(i).integer(0, INT32_MAX)));
}

} // namespace

PostProcessor::PostProcessor(const internal::JsonAt& json) {
  if (!json.is_null())
    read(json);
}

void PostProcessor::read(const internal::JsonAt& json) {
  const std::string type = json.at("type").text();
  if (type == "Sequence") {
    const internal::JsonAt list = json.at("processors");
    for (std::size_t i = 0; i < list.size(); ++i)
      read(list.at(i));
  } else if (type == "TemplateProcessing") {
    read_template(json);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    read_ends(json);
  } else if (type != "ByteLevel") {
    json.at("type").unsupported("the post-processor '" + type + "'");
  }
}

void PostProcessor::read_template(const internal::JsonAt& json) {
  if (!before_.empty() || !after_.empty())
    json.unsupported("a second TemplateProcessing");
  const internal::JsonAt single = json.at("single");
  bool seen = false;
  for (std::size_t i = 0; i < single.size(); ++i) {
    const internal::JsonAt part = single.at(i);
    if (part.has("SpecialToken")) {
      append_special(json.at("special_tokens"),
                     part.at("SpecialToken").at("id").text(),
                     seen ? after_ : before_);
      continue;
    }
    const internal::JsonAt id = part.at("Sequence").at("id");
    if (id.text() != "A" || seen)
      id.expected("the sequence A once");
    seen = true;
  }
  if (!seen)
    single.expected("the sequence A");
}

/// Reads `cls` and `sep`, [token, id] each.
void PostProcessor::read_ends(const internal::JsonAt& json) {
  if (!before_.empty() || !after_.empty())
    json.unsupported("a second post-processor with tokens");
  const auto id_of = [&](const char* key) {
    return static_cast<std::int32_t>(
      json.at(key).at(std::size_t{1}).integer(0, INT32_MAX));
  };
  before_ = {id_of("cls")};
  after_ = {id_of("sep")};
}

std::vector<std::int32_t>
PostProcessor::apply(std::vector<std::int32_t> ids) const {
  ids.insert(ids.begin(), before_.begin(), before_.end());
  ids.insert(ids.end(), after_.begin(), after_.end());
  return ids;
}

} // namespace troupe::models::tokenizer
