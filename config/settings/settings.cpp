#include "config/settings/settings.hpp"

#include "config/base/did_you_mean.hpp"
#include "config/base/log.hpp"
#include "config/settings/conventions.hpp"
#include "config/settings/settings_schema.hpp"
#include "config/settings/switched_off.hpp"
#include "config/settings/unknown_keys.hpp"
#include "config/settings/workflow_file.hpp"
#include "config/yaml/overrides.hpp"
#include "config/yaml/yaml_tree.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

namespace troupe {

namespace {

/// Walks a merged tree and fills settings by the table.
class SettingsReader {
public:
  SettingsReader(std::string workflow, Mistakes& mistakes)
    : mistakes_(mistakes) {
    settings_.workflow = std::move(workflow);
  }

  Settings read(const YamlNode& tree) {
    read_entries(tree, "");
    return std::move(settings_);
  }

private:
  void read_entries(const YamlNode& node, const std::string& prefix) {
    for (const auto& [key, value] : node.entries)
      mistakes_.collect([&, &key = key, &value = value] {
        read_entry(value, prefix.empty() ? key : prefix + "." + key, key);
      });
  }

  void read_entry(const YamlNode& node, const std::string& path,
                  const std::string& key) {
    const auto [field, role] = find_field(path);
    const bool dotted = key.find('.') != key.npos;
    if (dotted || (!field && !is_section(path)))
      return add_unknown_key(mistakes_, node, path, key, settings_.workflow);
    if (field) {
      check_role(node, role);
      read_value(*field, settings_, role, node, path);
      note_places(node, path);
      return;
    }
    if (!node.is_mapping())
      throw ConfigError(
        {.place = node.place,
         .path = path,
         .expected = "a mapping of settings",
         .got = describe(node),
         .hint = node.is_scalar() && node.text.empty()
                   ? fmt::format("{}=null to switch it off", path)
                   : fmt::format("'troupe explain {}'", path)});
    if (path.starts_with("models.") && path.find('.', 7) == path.npos)
      check_role(node, key);
    read_entries(node, path);
  }

  /// Records the places of a node and, for mappings, of its entries: parts of a
  /// plan, mapped columns.
  void note_places(const YamlNode& node, const std::string& path) {
    settings_.places[path] = node.place;
    for (const auto& [key, value] : node.entries)
      note_places(value, path + "." + key);
  }

  void check_role(const YamlNode& node, const std::string& role) const {
    const auto roles = roles_of(settings_.workflow);
    if (role.empty() || holds(roles, role))
      return;
    const auto nearest = nearest_word(role, roles);
    throw ConfigError(
      {.place = node.place,
       .path = "models." + role,
       .expected = fmt::format("a role of workflow {} ({})", settings_.workflow,
                               join_or(roles)),
       .got = fmt::format("'{}'", role),
       .hint = nearest.empty()
                 ? fmt::format("removing it (models.{}=null)", role)
                 : "models." + nearest});
  }

  Settings settings_;
  Mistakes& mistakes_;
};

/// Checks that a removed key is a setting, too: a typo would leave the intended
/// one in place.
void check_removed(Mistakes& mistakes, const YamlNode& node,
                   const std::string& path, const std::string& key,
                   const std::string& workflow) {
  if (find_field(path).first)
    return;
  if (!path.empty() && !is_section(path)) {
    if (node.is_null())
      add_unknown_key(mistakes, node, path, key, workflow);
    return; // reported when reading values
  }
  for (const auto& [name, value] : node.entries)
    check_removed(mistakes, value, path.empty() ? name : path + "." + name,
                  name, workflow);
}

std::string settings_workflow(const YamlNode& tree, const Place& whole) {
  const auto [field, role] = find_field("workflow");
  const YamlNode* node = tree.find("workflow");
  if (!node)
    throw ConfigError({.place = whole,
                       .path = "workflow",
                       .expected = expected_text(*field),
                       .got = "nothing",
                       .hint = ""});
  if (node->is_scalar() && is_workflow_file(node->text)
      && find_workflow_traits(node->text) == nullptr)
    add_workflow_traits(read_workflow_file(node->text).traits);
  Settings scratch;
  read_value(*field, scratch, role, *node, "workflow");
  return scratch.workflow;
}

void set_default(Settings& settings, const std::string& path,
                 const std::string& value) {
  read_value(*find_field(path).first, settings, "",
             parse_yaml(value, "default"), path);
}

/// Applies the workflow's own defaults to settings that it reads, where no
/// choice of the user sets another one, then the other defaults that choices
/// set.
void fill_in_defaults(Settings& settings, const WorkflowTraits& traits) {
  for (const auto& [path, value] : traits.defaults) {
    const auto& field = *find_field(path).first;
    if (was_set(settings, path) || !needs_hold(field, settings))
      continue;
    const auto convention = convention_for(settings, path);
    set_default(settings, path, convention ? convention->value : value);
  }
  for (const auto& path : convention_paths())
    if (!was_set(settings, path))
      if (const auto convention = convention_for(settings, path))
        set_default(settings, path, convention->value);
}

/// Refuses a text that was not written as this setting but becomes its value.
void check_shape(const Settings& settings, const std::string& path,
                 const std::string& text) {
  const auto& field = *find_field(path).first;
  if (!field.fits_shape(text))
    throw ConfigError({.place = place_of(settings, path),
                       .path = path,
                       .expected = field.shape,
                       .got = "another one",
                       .hint = path + "=NAME"});
}

/// Derives values from other settings where the user gave none.
void fill_in_settings(Settings& settings, const std::string& name) {
  if (settings.run.name.empty()) {
    settings.run.name = name;
    check_shape(settings, "run.name", name);
  }
  if (settings.cluster.device == "cuda") // alias used by libtorch and others
    settings.cluster.device = "gpu";
  const auto* traits = find_workflow_traits(settings.workflow);
  fill_in_defaults(settings, *traits);
  for (const auto& role : traits->roles)
    if (!role.default_path_of.empty() && uses_role(settings, role.name)
        && settings.models[role.name].path.empty())
      settings.models[role.name].path
        = settings.models[role.default_path_of].path;
}

/// Merges the layers: later ones win, and their nulls remove what earlier ones
/// set.
YamlNode merged_layers(const std::vector<YamlNode>& layers) {
  YamlNode merged;
  merged.kind = YamlNode::Kind::mapping;
  for (const auto& layer : layers)
    merge_yaml(merged, layer);
  return merged;
}

/// Leaves out settings that a later layer switched off and warns about them, so
/// that nobody expects an effect from them.
void leave_out_and_warn(Settings& settings, const std::vector<YamlNode>& layers,
                        const std::vector<std::string>& files) {
  MergedLayers merged{.files = files, .removed = {}};
  for (std::size_t i = 0; i < layers.size(); ++i)
    note_removed(layers[i], i, merged.removed);
  for (const auto& [who, keys] : leave_out_switched_off(settings, merged))
    log::config.warn(
      fmt::format("left out, since {} switches off what reads them: {}", who,
                  fmt::join(keys, ", ")));
}

/// Sources of all layers, named for messages.
struct SettingsSource {
  std::vector<std::string> files; ///< before the command line
  Place whole;
  std::string name; ///< default name of the run
};

Settings read_settings(const std::vector<YamlNode>& layers,
                       const SettingsSource& source) {
  const auto tree = merged_layers(layers);
  Mistakes mistakes;
  std::string workflow;
  mistakes.collect([&] { workflow = settings_workflow(tree, source.whole); });
  for (const auto& layer : layers)
    check_removed(mistakes, layer, "", "", workflow);
  auto settings = SettingsReader(workflow, mistakes).read(tree);
  mistakes.throw_any();
  fill_in_settings(settings, source.name);
  leave_out_and_warn(settings, layers, source.files);
  check_settings(settings, source.whole);
  return settings;
}

void refuse_command_workflow(const YamlNode& tree) {
  const YamlNode* node = tree.find("workflow");
  if (node && is_command_workflow(node->text))
    throw ConfigError({.place = node->place,
                       .path = "workflow",
                       .expected = expected_text(*find_field("workflow").first),
                       .got = fmt::format("'{}'", node->text),
                       .hint = fmt::format("`troupe {}`", node->text)});
}

void check_is_mapping(const YamlNode& tree) {
  if (!tree.is_mapping())
    throw ConfigError({.place = tree.place,
                       .path = "",
                       .expected = "a mapping of settings",
                       .got = describe(tree),
                       .hint = "'troupe explain'"});
}

/// Resolves a model path that does not exist in the working directory relative
/// to the file that names it, so that a folder of settings and models works
/// from anywhere.
void find_models_beside(YamlNode& layer, const std::filesystem::path& file) {
  auto* models = layer.find("models");
  if (!models)
    return;
  for (auto& [role, model] : models->entries) {
    auto* path = model.find("path");
    std::error_code ignored;
    if (!path || path->text.empty()
        || std::filesystem::exists(path->text, ignored))
      continue;
    const auto beside = file.parent_path() / path->text;
    if (std::filesystem::is_directory(beside, ignored))
      path->text = beside.string();
  }
}

} // namespace

Settings load_settings(const std::vector<std::string>& files,
                       const std::vector<std::string>& overrides) {
  std::vector<YamlNode> layers;
  for (const auto& file : files) {
    layers.push_back(read_yaml(file));
    check_is_mapping(layers.back());
    find_models_beside(layers.back(), file);
  }
  layers.push_back(parse_overrides(overrides));
  const auto last = files.empty() ? std::string("run") : files.back();
  refuse_command_workflow(merged_layers(layers));
  return read_settings(layers,
                       {.files = files,
                        .whole = {files.empty() ? "command line" : last, 0},
                        .name = std::filesystem::path(last).stem().string()});
}

Settings parse_settings(const std::string& yaml_text,
                        const std::string& file_name) {
  const auto tree = parse_yaml(yaml_text, file_name);
  check_is_mapping(tree);
  return read_settings(
    {tree}, {.files = {file_name},
             .whole = {file_name, 0},
             .name = std::filesystem::path(file_name).stem().string()});
}

Place place_of(const Settings& settings, const std::string& dotted_key) {
  // The key itself, or the first one below it.
  const auto at = settings.places.lower_bound(dotted_key);
  if (at == settings.places.end())
    return {};
  if (at->first == dotted_key)
    return at->second;
  const auto below = settings.places.lower_bound(dotted_key + ".");
  if (below != settings.places.end()
      && below->first.starts_with(dotted_key + "."))
    return below->second;
  return {};
}

Place nearest_place_of(const Settings& settings, std::string dotted_key) {
  while (true) {
    const auto place = place_of(settings, dotted_key);
    const auto dot = dotted_key.rfind('.');
    if (!place.file.empty() || dot == dotted_key.npos)
      return place;
    dotted_key.resize(dot);
  }
}

bool was_set(const Settings& settings, const std::string& dotted_key) {
  return !place_of(settings, dotted_key).file.empty();
}

const std::vector<std::string>& resumable_changes() {
  static const std::vector<std::string> keys
    = {"cluster", "plan", "metrics", "trace", "eval", "run.steps",
       "run.save_every", "run.snapshot_every", "run.keep",
       // the number of responses in flight changes no result (I2)
       "rollout.kv_cache_gb", "rollout.max_sequences",
       // where servers are, not what they compute
       "rollout.servers", "rollout.server_command", "rollout.weights_over",
       // the way of continuing is no property of the run
       "run.resume"};
  return keys;
}

} // namespace troupe
