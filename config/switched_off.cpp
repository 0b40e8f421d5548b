#include "config/switched_off.hpp"

#include "config/settings_schema.hpp"

#include <map>

namespace troupe {

namespace {

class SwitchedOff {
public:
  SwitchedOff(Settings& settings, const std::vector<std::string>& files)
    : settings_(settings),
      files_(files) {}

  std::vector<std::string> leave_out() {
    // a setting that goes may be what another one needs
    while (leave_out_settings() || leave_out_roles()) {
    }
    return left_out_;
  }

private:
  /// The number of the layer that set `key`, or that switched it off; -1: none.
  int layer_of(const std::string& key) const {
    if (const auto gone = gone_.find(key); gone != gone_.end())
      return gone->second;
    const auto place = place_of(settings_, key);
    if (place.file.empty())
      return -1;
    // what is in no file is on the command line, the last layer
    for (std::size_t i = files_.size(); i > 0; --i)
      if (files_[i - 1] == place.file)
        return static_cast<int>(i) - 1;
    return static_cast<int>(files_.size());
  }

  /// Of settings outside `models`: those of a role go with the role.
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
    left_out_.push_back(key);
    std::erase_if(settings_.places, [&](const auto& entry) {
      return entry.first == key || entry.first.starts_with(key + ".");
    });
  }

  Settings& settings_;
  const std::vector<std::string>& files_;
  std::map<std::string, int> gone_; ///< by key, the layer that it went with
  std::vector<std::string> left_out_;
};

} // namespace

std::vector<std::string>
leave_out_switched_off(Settings& settings,
                       const std::vector<std::string>& files) {
  return SwitchedOff(settings, files).leave_out();
}

} // namespace troupe
