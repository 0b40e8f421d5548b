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

} // namespace

void add_own_section(const detail::OwnSection& section) {
  if (is_section(section.name) || find_field(section.name).first != nullptr)
    throw ConfigError({.place = {},
                       .path = section.name,
                       .expected = "a new section of settings",
                       .got = "one that is there already",
                       .hint = "another name"});
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
