#include "plans/foreign/yaml_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace troupe::plans {

namespace {

bool has_only_scalars(const YamlNode& list) {
  return std::ranges::all_of(list.items, [](const YamlNode& item) {
    return item.is_scalar() || item.is_null();
  });
}

std::string list_text(const YamlNode& list) {
  std::string text = "[";
  for (const auto& item : list.items)
    text += (text.size() > 1 ? ", " : "") + item.text;
  return text + "]";
}

void add_yaml(const YamlNode& node, const std::string& key,
              ForeignConfig& config) {
  const auto below = [&](const std::string& name) {
    return key.empty() ? name : key + "." + name;
  };
  if (node.is_mapping()) {
    for (const auto& [name, value] : node.entries)
      add_yaml(value, below(name), config);
  } else if (node.is_sequence() && !has_only_scalars(node)) {
    for (std::size_t i = 0; i < node.items.size(); ++i)
      add_yaml(node.items[i], below(std::to_string(i)), config);
  } else if (!key.empty()) {
    const auto text = node.is_sequence() ? list_text(node)
                      : node.is_null()   ? "null"
                                         : node.text;
    config.values.push_back({key, text, node.place});
  }
}

/// Resolves the references of one configuration.
class References {
public:
  explicit References(ForeignConfig& config) : config_(config) {}

  void resolve_all() {
    for (auto& value : config_.values)
      value.value = resolved(value.value, value, 0);
  }

private:
  static constexpr int deepest = 8; ///< more is a circle
  /// Bytes of a value; longer ones refer to each other without end.
  static constexpr std::size_t longest = 1 << 16;

  std::string resolved(const std::string& text, const ForeignValue& of,
                       int depth) {
    const auto begin = text.rfind("${"); // the innermost one
    const auto end = begin == text.npos ? begin : text.find('}', begin);
    if (end == text.npos || depth > deepest || text.size() > longest)
      return text;
    const auto inner = text.substr(begin + 2, end - begin - 2);
    const auto value = meaning(inner);
    if (!value) {
      config_.notes.push_back(
        {of.place,
         fmt::format("{}: ${{{}}} is not known here", of.key, inner)});
      return text;
    }
    return resolved(text.substr(0, begin) + *value + text.substr(end + 1), of,
                    depth + 1);
  }

  std::optional<std::string> meaning(const std::string& inner) const {
    const auto colon = inner.find(':');
    if (colon != inner.npos)
      return computed(inner.substr(0, colon), inner.substr(colon + 1));
    for (auto value = config_.values.rbegin(); value != config_.values.rend();
         ++value)
      if (value->key == inner)
        return value->value;
    return std::nullopt;
  }

  static std::optional<std::string> computed(const std::string& function,
                                             const std::string& arguments) {
    const auto comma = arguments.find(',');
    if (comma == arguments.npos)
      return std::nullopt;
    auto second = arguments.substr(comma + 1);
    second.erase(0, std::min(second.find_first_not_of(' '), second.size()));
    if (function == "oc.env" || function == "env")
      return second;
    double a = 0, b = 0;
    const auto first = arguments.substr(
      std::min(arguments.find_first_not_of(' '), arguments.size()));
    if (!read_whole(first.substr(0, first.find(',')), a)
        || !read_whole(second, b))
      return std::nullopt;
    if (function == "mul")
      return fmt::format("{}", a * b);
    if (function == "add" || function == "sum")
      return fmt::format("{}", a + b);
    return function == "div" && b != 0 ? std::optional(fmt::format("{}", a / b))
                                       : std::nullopt;
  }

  ForeignConfig& config_;
};

} // namespace

ForeignConfig yaml_values(const YamlNode& root) {
  ForeignConfig config;
  add_yaml(root, "", config);
  return config;
}

void resolve_references(ForeignConfig& config) {
  References(config).resolve_all();
}

} // namespace troupe::plans
