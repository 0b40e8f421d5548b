#include "config/settings/foreign_keys.hpp"

#include "config/settings/settings_schema.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe {

namespace {

/// Sections that only verl has: flags of other systems do not apply there.
constexpr auto verl_sections = std::to_array<std::string_view>(
  {"actor_rollout_ref", "critic", "reward_model", "custom_reward_function",
   "trainer", "ray_kwargs", "ray_init", "global_profiler", "optim", "engine"});

std::string normalised(const std::string& key) {
  std::string text = key;
  while (text.starts_with('-'))
    text.erase(0, 1);
  std::ranges::replace(text, '-', '_');
  return text;
}

/// Returns all rows of the tables for the foreign name `theirs`.
std::vector<const Translation*> rows_called(std::string_view theirs) {
  std::vector<const Translation*> found;
  for (const auto& table :
       {verl_translations(), openrlhf_translations(), trl_translations()})
    for (const auto& row : table)
      if (theirs == row.theirs)
        found.push_back(&row);
  return found;
}

} // namespace

std::vector<const Translation*> find_translations(const std::string& key) {
  return rows_called(normalised(key));
}

std::vector<const Translation*>
find_translations_by_last_part(const std::string& key) {
  const auto whole = normalised(key);
  const auto first = whole.substr(0, whole.find('.'));
  if (std::ranges::find(verl_sections, first) != verl_sections.end())
    return {};
  return rows_called(std::string_view(whole).substr(whole.rfind('.') + 1));
}

std::string key_of(const Translation& translation) {
  const std::string_view text = translation.ours;
  const std::string word(text.substr(0, text.find_first_of(" :,=")));
  const auto dot = word.find('.');
  return dot != word.npos && is_section(word.substr(0, dot)) ? word : "";
}

} // namespace troupe
