#include "config/settings/changed_settings.hpp"

#include "config/settings/settings_schema.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// Returns the workflow's default, else the table's.
std::string default_of(const Field& field, const WorkflowTraits& traits) {
  const auto user = std::ranges::find(
    traits.defaults, field.path, &std::pair<std::string, std::string>::first);
  if (user != traits.defaults.end())
    return user->second;
  return field.is_required ? "" : default_text(field);
}

} // namespace

std::vector<ChangedSetting> changed_settings(const Settings& settings) {
  const auto& traits = *find_workflow_traits(settings.workflow);
  std::vector<ChangedSetting> changed;
  const auto add = [&](const Field& field, const std::string& role) {
    const auto path = path_with_role(field.path, role);
    if (!was_set(settings, path))
      return;
    const auto value = value_text(field, settings, role);
    const auto usual = default_of(field, traits);
    if (value != usual)
      changed.push_back({path, value, usual});
  };
  std::vector<const Field*> of_roles;
  for (const auto& field : settings_fields())
    if (path_with_role(field.path, "x") == field.path)
      add(field, "");
    else
      of_roles.push_back(&field);
  for (const auto& role : traits.roles)
    for (const auto* field : of_roles)
      add(*field, role.name);
  return changed;
}

} // namespace troupe
