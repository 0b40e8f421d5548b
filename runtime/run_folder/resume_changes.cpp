#include "config/settings/settings.hpp"
#include "config/yaml/yaml_tree.hpp"
#include "runtime/run_folder/resume.hpp"

namespace troupe::runtime {

namespace {

std::string value_at(const YamlNode& tree, const std::string& key) {
  const YamlNode* node = tree.find_path(key);
  if (node == nullptr || node->is_null())
    return "";
  return node->is_scalar() ? print_yaml_scalar(node->text, node->quoted)
                           : print_yaml(*node);
}

} // namespace

std::vector<SettingChange> changes_that_matter(const Settings& before,
                                               const Settings& now) {
  const auto before_yaml = parse_yaml(print_settings(before), "run folder");
  const auto now_yaml = parse_yaml(print_settings(now), "command");
  // the location of a run and the way this attempt is handled do not count
  auto free_keys = resumable_changes();
  for (const char* key :
       {"run.name", "run.dir", "run.resume", "run.max_time", "run.keep_best"})
    free_keys.emplace_back(key);
  std::vector<SettingChange> changes;
  for (const auto& key : settings_difference(before, now, free_keys))
    changes.push_back(
      {key, value_at(before_yaml, key), value_at(now_yaml, key)});
  return changes;
}

} // namespace troupe::runtime
