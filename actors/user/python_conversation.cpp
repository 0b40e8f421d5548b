#include "actors/user/python_conversation.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <stdexcept>

namespace troupe::actors {

namespace {

using Json = nlohmann::json;

/// Texts of tokens may end within a character.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

/// JSON has no infinities and no NaN: they are texts that float() reads.
template <class T>
Json number_json(T value) {
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value))
      return fmt::format("{}", value);
  return value;
}

template <class T>
Json numbers_json(const Sample& sample, const KeyInfo& key) {
  if (key.per == Per::sample)
    return number_json(sample[Key<T>{key.name.c_str()}]);
  auto list = Json::array();
  for (const T value : sample[Key<T, per_token>{key.name.c_str()}])
    list.push_back(number_json(value));
  return list;
}

Json value_json(const Sample& sample, const KeyInfo& key) {
  if (key.type == KeyType::text)
    return sample[Key<std::string>{key.name.c_str()}];
  if (key.type == KeyType::f32)
    return numbers_json<float>(sample, key);
  return key.type == KeyType::i32 ? numbers_json<std::int32_t>(sample, key)
                                  : numbers_json<std::uint8_t>(sample, key);
}

void set_value(Sample& sample, const KeyInfo& key, const Json& value) {
  const char* name = key.name.c_str();
  if (key.type == KeyType::text)
    sample.set(Key<std::string>{name}, value.get<std::string>());
  else if (key.type == KeyType::f32)
    sample.set(Key<float>{name}, static_cast<float>(value.get<double>()));
  else if (key.type == KeyType::i32)
    sample.set(Key<std::int32_t>{name}, value.get<std::int32_t>());
  else
    sample.set(Key<std::uint8_t>{name}, value.get<std::uint8_t>());
}

} // namespace

PythonConversation::PythonConversation(std::uint64_t id, const UserEntry& entry,
                                       const Sample& sample)
  : entry_(entry),
    id_(id) {
  auto values = Json::object();
  for (const auto& key : entry.call.reads)
    values[key.name] = value_json(sample, key);
  begin_ = text_of({{"sample", sample.id()},
                    {"group", sample.group()},
                    {"values", std::move(values)}});
}

std::string PythonConversation::whole() const {
  return fmt::format(
    R"({{"id": {}, "begin": {}, "turns": [{}], "said": [{}]}})", id_, begin_,
    fmt::join(turns_, ", "), fmt::join(said_, ", "));
}

std::string PythonConversation::next(const Sample& sample) {
  turns_.push_back(text_of({{"turn", sample[keys::turn]},
                            {"response", sample[keys::response]},
                            {"truncated", sample[keys::truncated] != 0}}));
  return fmt::format(R"({{"id": {}, "turn": {}}})", id_, turns_.back());
}

PythonStep PythonConversation::take(std::string_view answer, Sample& sample) {
  const auto said = Json::parse(answer);
  if (said.contains("error"))
    throw std::runtime_error(said.at("error").get<std::string>());
  if (said.contains("forgotten"))
    return {.kind = PythonStep::Kind::forgotten};
  sample.append(said.at("appended").get<std::string>());
  if (said.contains("values")) {
    for (const auto& key : entry_.call.writes)
      set_value(sample, key, said.at("values").at(key.name));
    return {.kind = PythonStep::Kind::end};
  }
  said_.emplace_back(answer);
  return {.kind = PythonStep::Kind::extend,
          .max_tokens = said.at("max_tokens").get<std::uint32_t>(),
          .role = said.value("role", "")};
}

} // namespace troupe::actors
