// Settings as text: resolved YAML, differences, `troupe explain`.
#include "config/base/did_you_mean.hpp"
#include "config/base/error.hpp"
#include "config/settings/settings_schema.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace troupe {

namespace {

YamlNode print_mapping() {
  YamlNode node;
  node.kind = YamlNode::Kind::mapping;
  return node;
}

/// Puts `value` at dotted `path`, creating mappings on the way.
void print_put(YamlNode& tree, const std::string& path, YamlNode value) {
  YamlNode* node = &tree;
  std::size_t from = 0;
  while (true) {
    const auto dot = path.find('.', from);
    const auto key = path.substr(from, dot - from);
    YamlNode* child = node->find(key);
    if (!child)
      child = &node->entries.emplace_back(key, print_mapping()).second;
    if (dot == path.npos) {
      *child = std::move(value);
      return;
    }
    node = child;
    from = dot + 1;
  }
}

/// Returns true if the resolved settings of this run include the field.
bool print_wanted(const Field& field, const Settings& settings,
                  const std::string& role) {
  const auto& workflow = settings.workflow;
  const bool used = field_applies(field, workflow)
                    && is_for_role(field, workflow, role)
                    && needs_hold(field, settings);
  return used || value_text(field, settings, role) != default_text(field);
}

std::set<std::string> print_roles(const Settings& a, const Settings& b) {
  std::set<std::string> roles;
  for (const auto* settings : {&a, &b})
    for (const auto& [role, model] : settings->models)
      roles.insert(role);
  return roles;
}

bool is_excepted(const std::string& path,
                 const std::vector<std::string>& except) {
  return std::ranges::any_of(except, [&](const std::string& prefix) {
    return path == prefix || path.starts_with(prefix + ".");
  });
}

// -- explain
// -------------------------------------------------------------------

std::string explain_facts(const Field& field) {
  std::string text = expected_text(field);
  text += field.is_required ? ", required" : ", default " + default_text(field);
  const auto section = field.path.substr(0, field.path.find('.'));
  if (const auto readers = readers_of(field);
      readers != readers_of_section(section))
    text += fmt::format(", workflow {}", join_or(readers));
  if (field.is_trained_only)
    text += ", trained roles only";
  if (field.is_frozen_only)
    text += ", roles that are not trained only";
  if (!field.needs_key.empty())
    text += field.needs_value.empty()
              ? fmt::format(", only with {}", field.needs_key)
              : fmt::format(", only with {}: {}", field.needs_key,
                            join_or(field.needs_value));
  return text;
}

/// Returns `text` as comment lines of at most 80 columns.
std::string comment(const std::string& text, int indent) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::string out;
  std::string line;
  std::size_t from = 0;
  while (from < text.size()) {
    auto end = text.find(' ', from);
    end = end == text.npos ? text.size() : end;
    const auto word = text.substr(from, end - from);
    if (!line.empty() && margin.size() + 3 + line.size() + word.size() > 80) {
      out += margin + "# " + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    from = end + 1;
  }
  return out + margin + "# " + line + "\n";
}

int depth_of(const std::string& path) {
  return static_cast<int>(std::ranges::count(path, '.'));
}

std::string last_key(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

std::string explain_field_line(const Field& field, const std::string& role) {
  const int indent = 2 * depth_of(field.path);
  return comment(field.sentence, indent)
         + comment("(" + explain_facts(field) + ")", indent)
         + std::string(static_cast<std::size_t>(indent), ' ')
         + last_key(path_with_role(field.path, role)) + ": "
         + default_text(field) + "\n";
}

/// Writes fields in table order, with a section's heading before its first
/// field.
std::string explain_fields(const std::string& prefix, const std::string& role) {
  std::string out;
  std::set<std::string> begun;
  for (const auto& field : settings_fields()) {
    if (!prefix.empty() && !field.path.starts_with(prefix + "."))
      continue;
    for (const auto& section : settings_sections()) {
      if (!field.path.starts_with(section.name + ".")
          || !begun.insert(section.name).second)
        continue;
      const int indent = 2 * depth_of(section.name);
      std::string facts = section.sentence;
      if (const auto readers = readers_of_section(section.name);
          !readers.empty())
        facts += fmt::format(" (workflow {})", join_or(readers));
      out += (out.empty() || indent > 0 ? "" : "\n") + comment(facts, indent)
             + std::string(static_cast<std::size_t>(indent), ' ')
             + last_key(path_with_role(section.name, role)) + ":\n";
    }
    const bool top = depth_of(field.path) == 0;
    out += (top && !out.empty() ? "\n" : "") + explain_field_line(field, role);
  }
  return out;
}

std::string explain_one(const Field& field, const std::string& role) {
  std::string text
    = fmt::format("{}: {}\n", path_with_role(field.path, role),
                  field.is_required ? "required" : default_text(field));
  text += "  " + explain_facts(field) + "\n";
  return text + "  " + field.sentence + "\n";
}

} // namespace

std::string variable_named(const std::string& name) {
  return "$" + name;
}

std::map<std::string, std::string>
worker_environment(const Settings& settings) {
  auto environment = settings.cluster.env;
  for (auto& [name, value] : environment) {
    if (value != variable_named(name))
      continue;
    const char* here = std::getenv(name.c_str());
    if (here == nullptr)
      throw ConfigError(
        {.place = place_of(settings, "cluster.env." + name),
         .path = "cluster.env." + name,
         .expected = fmt::format("{} in the environment of this command", name),
         .got = "none",
         .hint = fmt::format("`export {}=..` before it", name)});
    value = here;
  }
  return environment;
}

std::string print_settings(const Settings& settings) {
  auto tree = print_mapping();
  for (const auto& field : settings_fields()) {
    if (path_with_role(field.path, "x") == field.path) {
      if (print_wanted(field, settings, ""))
        print_put(tree, field.path, value_node(field, settings, ""));
      continue;
    }
    // a role's fields are printed together, at the first one's position
    for (const auto& [role, model] : settings.models)
      if (print_wanted(field, settings, role) && uses_role(settings, role))
        print_put(tree, path_with_role(field.path, role),
                  value_node(field, settings, role));
  }
  return print_yaml(tree);
}

bool Settings::operator==(const Settings& other) const {
  return settings_difference(*this, other).empty();
}

std::vector<std::string>
settings_difference(const Settings& a, const Settings& b,
                    const std::vector<std::string>& except) {
  std::vector<std::string> different;
  auto compare = [&](const Field& field, const std::string& role) {
    const auto path = path_with_role(field.path, role);
    if (!is_excepted(path, except)
        && value_text(field, a, role) != value_text(field, b, role))
      different.push_back(path);
  };
  std::set<std::string> missing;
  for (const auto& field : settings_fields()) {
    if (path_with_role(field.path, "x") == field.path) {
      compare(field, "");
      continue;
    }
    for (const auto& role : print_roles(a, b)) {
      if (a.models.contains(role) && b.models.contains(role))
        compare(field, role);
      else if (missing.insert(role).second
               && !is_excepted("models." + role, except))
        different.push_back("models." + role);
    }
  }
  return different;
}

std::string explain_settings(const std::string& key) {
  if (key.empty())
    return explain_fields("", "actor");
  if (const auto [field, role] = find_field(key); field)
    return explain_one(*field, role);
  if (is_section(key)) {
    const bool in_models = key.starts_with("models.");
    const auto role = in_models ? key.substr(7, key.find('.', 7) - 7) : "actor";
    std::string generic = key;
    if (in_models)
      generic = "models.ROLE" + key.substr(7 + role.size());
    return explain_fields(generic, role);
  }
  std::vector<std::string> known;
  for (const auto& field : settings_fields())
    known.push_back(path_with_role(field.path, "actor"));
  for (const auto& section : settings_sections())
    known.push_back(path_with_role(section.name, "actor"));
  throw ConfigError({.place = {"command line", 0},
                     .path = "",
                     .expected = "a known setting",
                     .got = "'" + key + "'",
                     .hint = nearest_key(key, known)});
}

} // namespace troupe
