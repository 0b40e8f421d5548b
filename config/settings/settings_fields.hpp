// Helper of the settings table's sources: adds a field by section and member.
#pragma once

#include "config/settings/settings_schema.hpp"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

struct FieldTable {
  std::vector<Field> fields;

  Field& add(std::string path,
             std::function<Slot(Settings&, const std::string&)> slot,
             std::string sentence) {
    Field& field = fields.emplace_back();
    field.path = std::move(path);
    field.slot = std::move(slot);
    field.sentence = std::move(sentence);
    return field;
  }
  template <class S, class T>
  Field& add(const std::string& section, const std::string& key,
             S Settings::*part, T S::*member, std::string sentence) {
    return add(
      section + "." + key,
      [part, member](Settings& settings, const std::string&) -> Slot {
        return &(settings.*part.*member);
      },
      std::move(sentence));
  }
};

} // namespace troupe
