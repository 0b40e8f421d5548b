#include "config/unknown_keys.hpp"

#include "config/nearest.hpp"
#include "config/settings_schema.hpp"
#include "config/translations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace troupe {

namespace {

/// More names do not help to see what they are.
constexpr std::size_t shown_names_limit = 4;

/// Whether `workflow` has the field for the role; true of a workflow that is
/// not known yet.
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

/// Every setting and section that `workflow` reads, with its roles put in.
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

/// "critic" of "models.critic.x", "" elsewhere.
std::string find_role(const std::string& path) {
  return path.starts_with("models.") ? path.substr(7, path.find('.', 7) - 7)
                                     : "";
}

/// The role that "models.actor" of a translation means: that of the user's own
/// path, else the first one that the workflow trains.
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
  bool fits = false;
};

Meant meant_by(const Translation& row, const std::string& path,
               const std::string& workflow) {
  constexpr std::string_view actors = "models.actor.";
  Meant meant{.row = &row, .ours = row.ours, .fits = true};
  auto key = key_of(row);
  if (key.starts_with(actors)) {
    const auto role = meant_role(path, workflow);
    meant.ours.replace(7, 5, role);
    key.replace(7, 5, role);
  }
  if (const auto [field, role] = find_field(key); field)
    meant.fits = is_field_of(*field, workflow, role);
  return meant;
}

/// The translation that fits the workflow, else the first; none: no row.
Meant meaning_of(const std::string& path, const std::string& workflow) {
  Meant first;
  for (const auto* row : find_translations(path)) {
    auto meant = meant_by(*row, path, workflow);
    if (meant.fits)
      return meant;
    if (first.row == nullptr)
      first = std::move(meant);
  }
  if (first.row != nullptr)
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

/// Adds a line for each key at or below `path` that is translated; names the
/// values of others in `unknown`.
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

/// What is left of a section whose other keys were translated.
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

/// What to try in place of `path`: the nearest setting of the workflow, else
/// what explains its section.
std::string hint_for(const std::string& path, const std::string& workflow) {
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
