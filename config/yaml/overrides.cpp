#include "config/yaml/overrides.hpp"

#include <algorithm>

namespace troupe {

namespace {

const Place command_line{"command line", 0};

void put_on_command_line(YamlNode& node) {
  node.place = command_line;
  for (auto& item : node.items)
    put_on_command_line(item);
  for (auto& entry : node.entries)
    put_on_command_line(entry.second);
}

/// Returns true for "{question} Answer:" and "{question}": templates, not maps.
bool is_template(const std::string& text) {
  if (text[0] != '{')
    return false;
  try {
    const auto node = parse_yaml(text, command_line.file);
    return !node.entries.empty()
           && std::ranges::all_of(node.entries, [](const auto& entry) {
                return entry.second.is_null();
              });
  } catch (const ConfigError&) {
    return true;
  }
}

/// Parses one override; mistakes name the setting because a command line has no
/// lines.
YamlNode parse_override(const std::string& path, const std::string& text) {
  try {
    return parse_yaml(text, command_line.file);
  } catch (const ConfigError& error) {
    auto parts = error.parts();
    parts.place = command_line;
    parts.path = parts.path.empty() ? path : path + "." + parts.path;
    throw ConfigError(parts);
  }
}

/// Parses the value of `path`, as YAML if it begins like YAML.
YamlNode override_value(const std::string& path, const std::string& text) {
  YamlNode node;
  constexpr std::string_view yaml_starts = "[{\"'";
  const bool yaml = !text.empty()
                    && yaml_starts.find(text[0]) != yaml_starts.npos
                    && !is_template(text);
  if (yaml)
    node = parse_override(path, text);
  else if (text != "null" && text != "~")
    node.kind = YamlNode::Kind::scalar;
  if (!yaml)
    node.text = text;
  node.replaces = node.is_mapping();
  put_on_command_line(node);
  return node;
}

YamlNode empty_mapping() {
  YamlNode node;
  node.kind = YamlNode::Kind::mapping;
  node.place = command_line;
  return node;
}

/// Puts `value` at `path` in `tree`, replacing an earlier value.
void put_at(YamlNode& tree, std::string_view path, YamlNode value) {
  YamlNode* node = &tree;
  while (true) {
    const auto dot = path.find('.');
    const auto key = path.substr(0, dot);
    YamlNode* child = node->find(key);
    if (!child)
      child
        = &node->entries.emplace_back(std::string(key), empty_mapping()).second;
    if (dot == path.npos) {
      *child = std::move(value);
      return;
    }
    if (!child->is_mapping()) { // a null or another value: replaced
      *child = empty_mapping();
      child->replaces = true;
    }
    node = child;
    path.remove_prefix(dot + 1);
  }
}

} // namespace

YamlNode parse_overrides(const std::vector<std::string>& overrides) {
  auto tree = empty_mapping();
  for (const auto& text : overrides) {
    const auto equals = text.find('=');
    const auto path = text.substr(0, equals);
    const bool good = equals != text.npos && !path.empty()
                      && path.front() != '.' && path.back() != '.'
                      && path.find("..") == path.npos;
    if (!good)
      throw ConfigError({.place = command_line,
                         .path = "",
                         .expected = "key=value",
                         .got = "'" + text + "'",
                         .hint = "run.steps=5"});
    put_at(tree, path, override_value(path, text.substr(equals + 1)));
  }
  return tree;
}

} // namespace troupe
