#include "config/settings/user_sections.hpp"

#include "config/base/error.hpp"
#include "config/settings/settings_schema.hpp"

#include "troupe/section.hpp"

namespace troupe {

namespace {

UserSettings& mutable_user_defaults() {
  static UserSettings defaults;
  return defaults;
}

Field make_user_field(const std::string& section,
                      const detail::UserField& user) {
  Field field;
  field.path = section + "." + user.key;
  field.sentence = user.sentence;
  field.is_required = user.required;
  field.range.least = user.least;
  field.choices = user.choices;
  field.user_section = section;
  field.slot = [section, slot = user.slot](Settings& settings,
                                           const std::string&) -> Slot {
    return std::visit([](auto* value) { return Slot{value}; },
                      slot(settings.user.at(section)));
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

void check_fields(const detail::UserSection& section) {
  std::map<std::string, std::string> sentences;
  for (const auto& field : section.fields) {
    const auto [first, is_new] = sentences.emplace(field.key, field.sentence);
    if (!is_new)
      there_twice("are named " + section.name + "." + field.key,
                  "'" + first->second + "'", "'" + field.sentence + "'");
  }
}

void check_is_new(const detail::UserSection& section) {
  if (!is_section(section.name) && find_field(section.name).first == nullptr)
    return;
  if (user_settings_defaults().contains(section.name)) {
    std::vector<std::string> first;
    for (const auto& field : settings_fields())
      if (field.user_section == section.name)
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

void add_user_section(const detail::UserSection& section) {
  check_is_new(section);
  check_fields(section);
  mutable_user_defaults()[section.name] = section.defaults;
  std::vector<Field> fields;
  for (const auto& user : section.fields)
    fields.push_back(make_user_field(section.name, user));
  add_to_settings_table({section.name, section.sentence}, std::move(fields));
}

void forget_user_sections() {
  for (const auto& [name, values] : user_settings_defaults())
    remove_from_settings_table(name);
  mutable_user_defaults().clear();
}

const UserSettings& user_settings_defaults() {
  return mutable_user_defaults();
}

} // namespace troupe
