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
  /// Adds a field of a part of a section's struct; the part is no section.
  template <class S, class P, class T>
  Field& add_nested(const std::string& section, const std::string& key,
                    S Settings::*whole, P S::*part, T P::*member,
                    std::string sentence) {
    return add(
      section + "." + key,
      [whole, part, member](Settings& settings, const std::string&) -> Slot {
        return &(settings.*whole.*part.*member);
      },
      std::move(sentence));
  }
};

/// Adds a key of `algorithm` that is stored in one of its parts.
template <class P, class T>
Field& add_part(FieldTable& table, const char* key, P AlgorithmSettings::*part,
                T P::*member, const char* sentence) {
  return table.add_nested("algorithm", key, &Settings::algorithm, part, member,
                          sentence);
}

/// Adds the settings of losses and of `algorithm.correction`.
void add_loss_fields(FieldTable& table);

} // namespace troupe
