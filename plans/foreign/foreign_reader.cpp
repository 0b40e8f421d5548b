#include "plans/foreign/foreign_reader.hpp"

#include "config/yaml/yaml_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace troupe::plans {

namespace {

[[noreturn]] void refuse_value(const ForeignValue& value,
                               const std::string& expected) {
  const bool open = value.value.find('$') != std::string::npos;
  throw ConfigError(
    {.place = value.place,
     .path = value.key,
     .expected = expected,
     .got = "'" + value.value + "'",
     .hint = open ? fmt::format("{}=VALUE after the file", value.key) : ""});
}

} // namespace

const ForeignValue* ForeignReader::find(ForeignKeys keys) const {
  for (const char* key : keys)
    if (const auto* value = config_.find(key))
      return value;
  return nullptr;
}

bool ForeignReader::has(ForeignKeys keys) const {
  return find(keys) != nullptr;
}

void ForeignReader::mark(const std::string& key, Fate fate,
                         const std::string& meaning) {
  fates_.try_emplace(key, fate, meaning);
}

void ForeignReader::assume(const std::string& key, const std::string& value,
                           const std::string& meaning) {
  const auto same = [&](const AssumedValue& one) { return one.key == key; };
  if (std::ranges::none_of(recipe_.assumed, same))
    recipe_.assumed.push_back({key, value, meaning});
}

std::optional<std::string>
ForeignReader::find_text(ForeignKeys keys, const std::string& meaning) {
  for (const char* key : keys) // a null says something too
    mark(key, Fate::understood, meaning);
  const auto* value = find(keys);
  return value ? std::optional(value->value) : std::nullopt;
}

std::optional<std::int64_t>
ForeignReader::find_integer(ForeignKeys keys, const std::string& meaning) {
  const auto text = find_text(keys, meaning);
  if (!text)
    return std::nullopt;
  std::int64_t whole = 0;
  if (read_whole(*text, whole))
    return whole;
  double number = 0;                         // 1e6, or the 2048.0 of a product
  constexpr double exact = 9007199254740992; // 2^53; beyond are no fractions
  if (read_whole(*text, number) && std::abs(number) <= exact
      && number == std::trunc(number))
    return static_cast<std::int64_t>(number);
  refuse_value(*find(keys), "a whole number");
}

std::optional<double> ForeignReader::find_number(ForeignKeys keys,
                                                 const std::string& meaning) {
  const auto text = find_text(keys, meaning);
  if (!text)
    return std::nullopt;
  double number = 0;
  if (!read_whole(*text, number))
    refuse_value(*find(keys), "a number");
  return number;
}

std::string ForeignReader::text(ForeignKeys keys, const std::string& otherwise,
                                const std::string& meaning) {
  if (const auto value = find_text(keys, meaning))
    return *value;
  assume(*keys.begin(), otherwise, meaning);
  return otherwise;
}

std::int64_t ForeignReader::integer(ForeignKeys keys, std::int64_t otherwise,
                                    const std::string& meaning) {
  if (const auto value = find_integer(keys, meaning))
    return *value;
  assume(*keys.begin(), std::to_string(otherwise), meaning);
  return otherwise;
}

double ForeignReader::number(ForeignKeys keys, double otherwise,
                             const std::string& meaning) {
  if (const auto value = find_number(keys, meaning))
    return *value;
  assume(*keys.begin(), fmt::format("{}", otherwise), meaning);
  return otherwise;
}

std::optional<std::uint32_t>
ForeignReader::find_count(ForeignKeys keys, const std::string& meaning,
                          std::uint32_t least) {
  constexpr std::uint32_t most = 1 << 14; // products of two stay far from 2^32
  const auto value = find_integer(keys, meaning);
  if (value && (*value < least || *value > most))
    refuse(keys, fmt::format("a count from {} to {}", least, most), "");
  return value ? std::optional(static_cast<std::uint32_t>(*value))
               : std::nullopt;
}

std::uint32_t ForeignReader::count(ForeignKeys keys, std::uint32_t otherwise,
                                   const std::string& meaning,
                                   std::uint32_t least) {
  if (const auto value = find_count(keys, meaning, least))
    return *value;
  assume(*keys.begin(), std::to_string(otherwise), meaning);
  return otherwise;
}

std::string ForeignReader::model(ForeignKeys keys, const std::string& meaning) {
  const auto name = find_text(keys, meaning);
  if (!name || name->find('$') != name->npos)
    refuse(keys, "a model",
           fmt::format("{}=NAME after the file", *keys.begin()));
  return *name;
}

bool ForeignReader::flag(ForeignKeys keys, bool otherwise,
                         const std::string& meaning) {
  auto value = find_text(keys, meaning);
  if (!value)
    return otherwise;
  std::ranges::transform(*value, value->begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  if (*value == "true" || *value == "1" || *value == "yes")
    return true;
  if (*value == "false" || *value == "0" || *value == "no" || *value == "none")
    return false;
  refuse_value(*find(keys), "true or false");
}

void ForeignReader::copy(ForeignKeys keys, const std::string& ours) {
  if (const auto value = find_text(keys, ours))
    recipe_.work.set(ours, *value);
}

void ForeignReader::not_modelled(ForeignKeys keys, const std::string& why,
                                 const std::string& off) {
  for (const char* key : keys) {
    const auto* value = config_.find(key);
    const bool is_off = !value || value->value == off || value->value == "False"
                        || value->value == "false" || value->value == "0";
    mark(key, is_off ? Fate::irrelevant : Fate::not_modelled,
         is_off ? "off" : why);
  }
}

void ForeignReader::irrelevant(std::span<const char* const> beginnings) {
  for (const auto& value : config_.values)
    for (const char* beginning : beginnings)
      if (value.key.starts_with(beginning))
        mark(value.key, Fate::irrelevant, "");
}

void ForeignReader::irrelevant_endings(ForeignKeys endings) {
  for (const auto& value : config_.values)
    for (const std::string ending : endings)
      if (value.key == ending || value.key.ends_with("." + ending))
        mark(value.key, Fate::irrelevant, "");
}

void ForeignReader::refuse(ForeignKeys keys, const std::string& expected,
                           const std::string& hint) const {
  const auto* value = find(keys);
  throw ConfigError({.place = value ? value->place : Place{},
                     .path = *keys.begin(),
                     .expected = expected,
                     .got = value ? "'" + value->value + "'" : "nothing",
                     .hint = hint});
}

void ForeignReader::finish() {
  for (const auto& value : config_.values) {
    if (config_.find(value.key) != &value && config_.find(value.key))
      continue; // a later one counts
    const auto fate = fates_.find(value.key);
    recipe_.values.push_back(
      fate == fates_.end()
        ? ReadValue{value}
        : ReadValue{value, fate->second.first, fate->second.second});
  }
  recipe_.notes.insert(recipe_.notes.begin(), config_.notes.begin(),
                       config_.notes.end());
}

std::uint32_t divided(const ForeignReader& reader, ForeignKeys keys,
                      std::uint32_t dividend, std::uint32_t divisor,
                      const std::string& what) {
  if (divisor == 0 || dividend % divisor != 0)
    reader.refuse(keys, fmt::format("a divisor of {} ({})", dividend, what),
                  "");
  return dividend / divisor;
}

} // namespace troupe::plans
