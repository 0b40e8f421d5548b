#include "config/settings/unknown_keys.hpp"

#include "config/base/did_you_mean.hpp"
#include "config/settings/foreign_keys.hpp"
#include "config/settings/settings_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace troupe {

namespace {

/// Limit of names in a message; more do not help.
constexpr std::size_t shown_names_limit = 4;

/// Returns true if `workflow` has the field for the role, or is not known yet.
bool is_field_of(const Field& field, const std::string& workflow,
                 const std::string& role) {
  if (workflow.empty())
    return true;
  const bool by_role = path_with_role(field.path, "x") != field.path;
  if (!by_role)
    return field_applies(field, workflow);
  const auto roles = roles_of(workflow);
  return std::ranges::find(roles, role) != roles.end()
         && is_for_role(field, workflow, role);
}

/// Returns every setting and section that `workflow` reads, with its roles
/// inserted.
std::vector<std::string> settings_known_keys(const std::string& workflow) {
  auto roles = roles_of(workflow);
  if (roles.empty())
    roles = {"actor"};
  std::vector<std::string> keys;
  for (const auto& field : settings_fields()) {
    if (path_with_role(field.path, "x") == field.path) {
      if (is_field_of(field, workflow, ""))
        keys.push_back(field.path);
      continue;
    }
    for (const auto& role : roles)
      if (is_field_of(field, workflow, role))
        keys.push_back(path_with_role(field.path, role));
  }
  for (const auto& section : settings_sections()) {
    if (path_with_role(section.name, "x") != section.name)
      for (const auto& role : roles)
        keys.push_back(path_with_role(section.name, role));
    else if (workflow.empty() || section_applies(section.name + ".", workflow))
      keys.push_back(section.name);
  }
  return keys;
}

/// Returns true if the first part of `path` names a section that `workflow`
/// reads. Any built-in section counts if the workflow is not known yet,
/// sections of a user-defined program always.
bool begins_with_section(const std::string& path, const std::string& workflow) {
  const auto first = path.substr(0, path.find('.'));
  return is_section(first)
         && (workflow.empty() || user_settings_defaults().contains(first)
             || section_applies(first + ".", workflow));
}

/// Returns true if a section such as models.ROLE.optimizer ends with `name`.
bool is_inner_section(const std::string& name) {
  return std::ranges::any_of(settings_sections(), [&](const auto& section) {
    return section.name.ends_with("." + name);
  });
}

/// Returns the innermost section of ours around `path`: "models.actor" for
/// "models.actor.optim.beta", "optimizer" for "optimizer.beta", which lacks its
/// role. "": none, so the key belongs to another system.
std::string section_around(const std::string& path,
                           const std::string& workflow) {
  const auto first_dot = path.find('.');
  if (first_dot == path.npos)
    return "";
  const auto first = path.substr(0, first_dot);
  if (!begins_with_section(path, workflow))
    return is_inner_section(first) ? first : "";
  auto section = path.substr(0, path.rfind('.'));
  while (!is_section(section)) // ends with the first part
    section.resize(section.rfind('.'));
  return section;
}

/// Returns true if our `key` is in `section`, which may lack its role.
bool lies_in(const std::string& key, const std::string& section) {
  return ("." + key).find("." + section + ".") != std::string::npos;
}

/// Returns the nearest setting in the section of ours around `path`; "": none.
std::string nearest_in_section(const std::string& path,
                               const std::string& workflow) {
  const auto section = section_around(path, workflow);
  if (section.empty())
    return "";
  auto keys = settings_known_keys(workflow);
  std::erase_if(keys, [&](const auto& key) { return !lies_in(key, section); });
  return nearest_key(path, keys);
}

/// Returns "critic" for "models.critic.x", "" for other paths.
std::string find_role(const std::string& path) {
  return path.starts_with("models.") ? path.substr(7, path.find('.', 7) - 7)
                                     : "";
}

/// Returns the role that "models.actor" of a translation refers to: that of the
/// user's path, else the first that the workflow trains.
std::string meant_role(const std::string& path, const std::string& workflow) {
  if (const auto role = find_role(path); !role.empty())
    return role;
  const auto roles = roles_of(workflow);
  const auto trained = std::ranges::find_if(
    roles, [&](const auto& role) { return is_trained(workflow, role); });
  return trained == roles.end() ? "actor" : *trained;
}

/// A translation in terms of one workflow.
struct Meant {
  const Translation* row = nullptr;
  std::string ours;
  std::string key; ///< setting at the start of `ours`; "": mere advice
  bool fits = false;
};

Meant meant_by(const Translation& row, const std::string& path,
               const std::string& workflow) {
  constexpr std::string_view actors = "models.actor.";
  Meant meant{.row = &row, .ours = row.ours, .key = {}, .fits = true};
  auto key = key_of(row);
  if (key.starts_with(actors)) {
    const auto role = meant_role(path, workflow);
    meant.ours.replace(7, 5, role);
    key.replace(7, 5, role);
  }
  meant.key = key;
  if (const auto [field, role] = find_field(key); field)
    meant.fits = is_field_of(*field, workflow, role);
  return meant;
}

std::vector<Meant> meanings_of(const std::vector<const Translation*>& rows,
                               const std::string& path,
                               const std::string& workflow) {
  std::vector<Meant> meanings;
  for (const auto* row : rows)
    meanings.push_back(meant_by(*row, path, workflow));
  return meanings;
}

/// Returns all possible meanings of `path`. Inside a section of ours the last
/// part alone means only settings of that section, and nothing if a setting of
/// the section is near; a section of a user-defined program has no foreign
/// keys.
std::vector<Meant> all_meanings_of(const std::string& path,
                                   const std::string& workflow) {
  const auto section = section_around(path, workflow);
  if (!user_settings_defaults().contains(section)) {
    auto whole = meanings_of(find_translations(path), path, workflow);
    if (!whole.empty())
      return whole;
  }
  auto meanings
    = meanings_of(find_translations_by_last_part(path), path, workflow);
  if (section.empty() || meanings.empty())
    return meanings;
  if (!nearest_in_section(path, workflow).empty())
    return {};
  std::erase_if(
    meanings, [&](const Meant& meant) { return !lies_in(meant.key, section); });
  return meanings;
}

/// Returns the translation that fits the workflow, else the first; empty if no
/// row matches.
Meant meaning_of(const std::string& path, const std::string& workflow) {
  const auto meanings = all_meanings_of(path, workflow);
  if (meanings.empty())
    return {};
  const auto fitting = std::ranges::find_if(
    meanings, [](const Meant& meant) { return meant.fits; });
  if (fitting != meanings.end())
    return *fitting;
  auto first = meanings.front();
  first.ours = fmt::format("leaving it out (workflow {} has no {})", workflow,
                           key_of(*first.row));
  return first;
}

ConfigError foreign_key(const YamlNode& node, const std::string& path,
                        const Meant& meant) {
  const std::string system = meant.row->system;
  std::string got = fmt::format("'{}'", meant.row->theirs);
  if (!system.empty())
    got = path == meant.row->theirs
            ? "one of " + system
            : fmt::format("{}'s {}", system, meant.row->theirs);
  return ConfigError({.place = node.place,
                      .path = path,
                      .expected = "a setting of Troupe",
                      .got = got,
                      .hint = meant.ours});
}

/// Adds a line for each key at or below `path` that is translated; collects the
/// names of the others in `unknown`.
bool add_foreign_keys(Mistakes& mistakes, const YamlNode& node,
                      const std::string& path, const std::string& workflow,
                      std::vector<std::string>& unknown) {
  if (const auto meant = meaning_of(path, workflow); meant.row != nullptr) {
    mistakes.add(foreign_key(node, path, meant));
    return true;
  }
  if (node.entries.empty())
    unknown.push_back(path);
  bool any = false;
  for (const auto& [key, value] : node.entries)
    any
      |= add_foreign_keys(mistakes, value, path + "." + key, workflow, unknown);
  return any;
}

/// Returns the error for the remaining keys of a section whose other keys were
/// translated.
ConfigError keys_without_equal(const YamlNode& node, const std::string& path,
                               const std::vector<std::string>& unknown) {
  std::string names;
  const auto shown = std::min(unknown.size(), shown_names_limit);
  for (std::size_t i = 0; i < shown; ++i)
    names += (i > 0 ? ", " : "") + unknown[i].substr(path.size() + 1);
  if (unknown.size() > shown)
    names += ", ...";
  return ConfigError(
    {.place = node.place,
     .path = path,
     .expected = "settings of Troupe",
     .got = fmt::format("{} {} without an equal here ({})", unknown.size(),
                        unknown.size() == 1 ? "key" : "keys", names),
     .hint = "leaving them out"});
}

/// Returns what to try instead of `path`: the nearest setting of its section,
/// else of the workflow, else the command that explains its section.
std::string hint_for(const std::string& path, const std::string& workflow) {
  if (auto user = nearest_in_section(path, workflow); !user.empty())
    return user;
  const auto nearest = nearest_key(path, settings_known_keys(workflow));
  if (!nearest.empty())
    return nearest;
  const auto other = nearest_key(path, settings_known_keys(""));
  if (!other.empty())
    return fmt::format("removing it (workflow {} does not read {})", workflow,
                       other);
  const auto section = path.substr(0, path.find('.'));
  return is_section(section) && section != path
           ? fmt::format("'troupe explain {}'", section)
           : "'troupe explain'";
}

} // namespace

void add_unknown_key(Mistakes& mistakes, const YamlNode& node,
                     const std::string& path, const std::string& key,
                     const std::string& workflow) {
  std::vector<std::string> unknown;
  if (add_foreign_keys(mistakes, node, path, workflow, unknown)) {
    if (!unknown.empty())
      mistakes.add(keys_without_equal(node, path, unknown));
    return;
  }
  const auto hint = hint_for(path, workflow);
  const bool dotted = key.find('.') != key.npos && hint == path;
  mistakes.add(ConfigError(
    {.place = node.place,
     .path = path,
     .expected = "a known setting",
     .got = fmt::format("'{}'", key),
     .hint = dotted ? "nesting it instead of writing dots" : hint}));
}

} // namespace troupe
