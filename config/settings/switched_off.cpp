#include "config/settings/switched_off.hpp"

#include "config/settings/settings_schema.hpp"

#include <algorithm>

namespace troupe {

namespace {

using LeftOut = std::map<std::string, std::vector<std::string>>;

void note_removed_below(const YamlNode& node, const std::string& path,
                        std::size_t number,
                        std::map<std::string, std::size_t>& removed) {
  if (node.is_null() || (node.is_mapping() && node.replaces))
    removed[path] = number;
  for (const auto& [key, value] : node.entries)
    note_removed_below(value, path + "." + key, number, removed);
}

class SwitchedOff {
public:
  SwitchedOff(Settings& settings, const MergedLayers& layers)
    : settings_(settings),
      layers_(layers) {}

  LeftOut leave_out() {
    // a setting that is left out may be needed by another one
    while (leave_out_settings() || leave_out_roles()) {
    }
    return left_out_;
  }

private:
  /// Returns the number of the layer that set `key` or switched it off; -1:
  /// none.
  int layer_of(const std::string& key) const {
    if (const auto gone = gone_.find(key); gone != gone_.end())
      return gone->second;
    const auto place = place_of(settings_, key);
    if (place.file.empty())
      return layer_that_removed(key);
    // a key in no file is on the command line, the last layer
    const auto& files = layers_.files;
    for (std::size_t i = files.size(); i > 0; --i)
      if (files[i - 1] == place.file)
        return static_cast<int>(i) - 1;
    return static_cast<int>(files.size());
  }

  /// Returns the last layer that removed `key` or an enclosing section; -1:
  /// none.
  int layer_that_removed(std::string key) const {
    int last = -1;
    while (true) {
      if (const auto found = layers_.removed.find(key);
          found != layers_.removed.end())
        last = std::max(last, static_cast<int>(found->second));
      const auto dot = key.rfind('.');
      if (dot == key.npos)
        return last;
      key.resize(dot);
    }
  }

  /// Leaves out settings outside `models`; those of a role are left out with
  /// the role.
  bool leave_out_settings() {
    bool any = false;
    for (const auto& field : settings_fields()) {
      if (field.needs_key.empty() || !was_set(settings_, field.path)
          || needs_hold(field, settings_)
          || layer_of(field.path) >= layer_of(field.needs_key))
        continue;
      const Settings defaults;
      read_value(field, settings_, "", value_node(field, defaults, ""),
                 field.path);
      forget(field.path, layer_of(field.needs_key));
      any = true;
    }
    return any;
  }

  bool leave_out_roles() {
    bool any = false;
    const auto* traits = find_workflow_traits(settings_.workflow);
    for (const auto& role : traits->roles) {
      const auto key = "models." + role.name;
      if (role.needs_key.empty() || !was_set(settings_, key)
          || uses_role(settings_, role.name)
          || layer_of(key) >= layer_of(role.needs_key))
        continue;
      settings_.models.erase(role.name);
      forget(key, layer_of(role.needs_key));
      any = true;
    }
    return any;
  }

  void forget(const std::string& key, int layer) {
    gone_[key] = layer;
    const auto number = static_cast<std::size_t>(layer);
    const auto& files = layers_.files;
    left_out_[number < files.size() ? files[number] : "the command line"]
      .push_back(key);
    std::erase_if(settings_.places, [&](const auto& entry) {
      return entry.first == key || entry.first.starts_with(key + ".");
    });
  }

  Settings& settings_;
  const MergedLayers& layers_;
  std::map<std::string, int> gone_; ///< by key: layer that switched it off
  LeftOut left_out_;
};

} // namespace

void note_removed(const YamlNode& layer, std::size_t number,
                  std::map<std::string, std::size_t>& removed) {
  for (const auto& [key, value] : layer.entries)
    note_removed_below(value, key, number, removed);
}

LeftOut leave_out_switched_off(Settings& settings, const MergedLayers& layers) {
  return SwitchedOff(settings, layers).leave_out();
}

} // namespace troupe
