#include "config/own_sections.hpp"

#include "config/error.hpp"
#include "config/settings_schema.hpp"

#include "troupe/section.hpp"

namespace troupe {

namespace {

OwnSettings& mutable_own_defaults() {
  static OwnSettings defaults;
  return defaults;
}

Field make_own_field(const std::string& section, const detail::OwnField& own) {
  Field field;
  field.path = section + "." + own.key;
  field.sentence = own.sentence;
  field.is_required = own.required;
  field.least = own.least;
  field.choices = own.choices;
  field.own_section = section;
  field.slot = [section, slot = own.slot](Settings& settings,
                                          const std::string&) -> Slot {
    return std::visit([](auto* value) { return Slot{value}; },
                      slot(settings.own.at(section)));
  };
  return field;
}

[[noreturn]] void there_twice(const std::string& what, const std::string& first,
                              const std::string& second) {
  throw ConfigError(Place{}, "two settings " + what + ": one " + first
                               + ", one " + second
                               + "; try another name for one");
}

std::string with_fields(const std::vector<std::string>& keys) {
  std::string text = keys.empty() ? "without fields" : "with ";
  for (const auto& key : keys)
    text += (&key == keys.data() ? "" : ", ") + key;
  return text;
}

void check_fields(const detail::OwnSection& section) {
  std::map<std::string, std::string> sentences;
  for (const auto& field : section.fields) {
    const auto [first, is_new] = sentences.emplace(field.key, field.sentence);
    if (!is_new)
      there_twice("are named " + section.name + "." + field.key,
                  "'" + first->second + "'", "'" + field.sentence + "'");
  }
}

void check_is_new(const detail::OwnSection& section) {
  if (!is_section(section.name) && find_field(section.name).first == nullptr)
    return;
  if (own_settings_defaults().contains(section.name)) {
    std::vector<std::string> first;
    for (const auto& field : settings_fields())
      if (field.own_section == section.name)
        first.push_back(field.path.substr(section.name.size() + 1));
    std::vector<std::string> second;
    for (const auto& field : section.fields)
      second.push_back(field.key);
    there_twice("sections are named " + section.name, with_fields(first),
                with_fields(second));
  }
  throw ConfigError({.place = {},
                     .path = section.name,
                     .expected = "a new section of settings",
                     .got = "one that is there already",
                     .hint = "another name"});
}

} // namespace

void add_own_section(const detail::OwnSection& section) {
  check_is_new(section);
  check_fields(section);
  mutable_own_defaults()[section.name] = section.defaults;
  std::vector<Field> fields;
  for (const auto& own : section.fields)
    fields.push_back(make_own_field(section.name, own));
  add_to_settings_table({section.name, section.sentence}, std::move(fields));
}

void forget_own_sections() {
  for (const auto& [name, values] : own_settings_defaults())
    remove_from_settings_table(name);
  mutable_own_defaults().clear();
}

const OwnSettings& own_settings_defaults() {
  return mutable_own_defaults();
}

} // namespace troupe
