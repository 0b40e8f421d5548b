#include "plans/cost/cluster_file.hpp"

#include "config/base/error.hpp"
#include "config/yaml/yaml_tree.hpp"
#include "plans/plan/plan_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace troupe::plans {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_nodes = 4096;
constexpr const char* example = "nodes: [{kind: h100x8, count: 2}, {kind: "
                                "a100x8, count: 4}]";

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// Returns what `other` lacks to be in a cluster with the first kind; empty:
/// nothing.
std::string why_not_beside(const Hardware& first, const Hardware& other) {
  if (first.devices_per_node != other.devices_per_node)
    return fmt::format("{} devices_per_node, as {} has", first.devices_per_node,
                       first.name);
  if ((first.mem_bytes > 0) != (other.mem_bytes > 0))
    return fmt::format("{} device.mem_bytes, as {} has",
                       first.mem_bytes > 0 ? "a" : "no", first.name);
  if (first.crowded_share != other.crowded_share)
    return fmt::format("device.crowded_share: {:g}, as {} has",
                       first.crowded_share, first.name);
  return "";
}

/// Reads the list, entry by entry.
class NodeList {
public:
  explicit NodeList(std::string file) : file_(std::move(file)) {}

  ClusterHardware read(const YamlNode& root) {
    ClusterHardware named;
    const std::vector<std::string> keys = {"name", "nodes"};
    for (const auto& [key, value] : root.entries)
      if (key == "name")
        named.name = yaml_text(value, key);
      else if (key != "nodes")
        yaml_wrong(value, key,
                   "name and nodes alone: numbers are those of the kinds",
                   "'" + key + "'", quoted_nearest(key, keys));
    const auto& list = *root.find("nodes");
    if (!list.is_sequence() || list.items.empty())
      yaml_wrong(list, "nodes", "a list of kinds with counts", describe(list),
                 example);
    for (std::size_t i = 0; i < list.items.size(); ++i)
      read_entry(list.items[i], fmt::format("nodes[{}]", i));
    named.kinds = std::move(kinds_);
    named.kind_of_nodes = std::move(nodes_);
    named.update();
    return named;
  }

private:
  void read_entry(const YamlNode& entry, const std::string& path) {
    const std::vector<std::string> keys = {"kind", "count"};
    if (!entry.is_mapping())
      yaml_wrong(entry, path, "a kind and a count", describe(entry),
                 "{kind: h100x8, count: 2}");
    for (const auto& [key, value] : entry.entries)
      if (std::ranges::find(keys, key) == keys.end())
        yaml_wrong(value, path + "." + key, "kind or count", "'" + key + "'",
                   quoted_nearest(key, keys));
    const auto* kind = entry.find("kind");
    if (!kind)
      yaml_wrong(entry, path + ".kind", "a kind of node", "nothing", "h100x8");
    const auto* count = entry.find("count");
    const auto number
      = count ? yaml_integer(*count, path + ".count", 1, most_nodes) : 1;
    const auto index
      = add_kind(read_kind(*kind, path + ".kind"), *kind, path + ".kind");
    nodes_.insert(nodes_.end(), static_cast<std::size_t>(number), index);
  }

  NodeKind read_kind(const YamlNode& kind, const std::string& path) const {
    if (kind.is_mapping())
      return of_mapping(kind, path);
    const auto& word = yaml_text(kind, path);
    const auto& names = shipped_hardware();
    if (std::ranges::find(names, word) != names.end())
      return {.hardware = load_hardware(word)};
    const auto beside = (fs::path(file_).parent_path() / word).string();
    if (!is_file(beside))
      yaml_wrong(
        kind, path,
        fmt::format("one of {}, a file or a mapping", fmt::join(names, ", ")),
        "'" + word + "'", quoted_nearest(word, names));
    if (read_yaml(beside).find("nodes"))
      yaml_wrong(kind, path, "a file of one kind of node",
                 "'" + word + "', which lists nodes");
    auto hardware = load_hardware(beside);
    if (hardware.name.empty())
      hardware.name = word;
    return {.hardware = std::move(hardware), .profile = load_profile(beside)};
  }

  NodeKind of_mapping(const YamlNode& kind, const std::string& path) const {
    try {
      auto hardware = parse_hardware(kind, file_);
      if (hardware.name.empty())
        yaml_wrong(kind, "name", "a name for tables", "nothing");
      return {.hardware = std::move(hardware),
              .profile = parse_profile(print_yaml(kind), file_)};
    } catch (const ConfigError& error) {
      auto parts = error.parts();
      parts.path = path + "." + parts.path;
      throw ConfigError(parts);
    }
  }

  /// Returns the index of a kind, which is added unless it is there.
  std::uint32_t add_kind(NodeKind kind, const YamlNode& node,
                         const std::string& path) {
    for (std::uint32_t i = 0; i < kinds_.size(); ++i) {
      if (kinds_[i].hardware.name != kind.hardware.name)
        continue;
      if (print(kinds_[i].hardware) != print(kind.hardware)
          || print(kinds_[i].profile) != print(kind.profile))
        yaml_wrong(node, path, "a name of its own for other numbers",
                   "'" + kind.hardware.name + "' again");
      return i;
    }
    if (kinds_.size() == most_kinds)
      yaml_wrong(node, path, fmt::format("at most {} kinds", most_kinds),
                 "one more");
    const auto why = kinds_.empty()
                       ? std::string()
                       : why_not_beside(kinds_[0].hardware, kind.hardware);
    if (!why.empty())
      yaml_wrong(node, path, why, "'" + kind.hardware.name + "'");
    kinds_.push_back(std::move(kind));
    return static_cast<std::uint32_t>(kinds_.size() - 1);
  }

  std::string file_;
  std::vector<NodeKind> kinds_;
  std::vector<std::uint32_t> nodes_;
};

} // namespace

ClusterHardware load_cluster_hardware(const std::string& name_or_file) {
  const auto& names = shipped_hardware();
  const bool shipped = std::ranges::find(names, name_or_file) != names.end();
  if (shipped || !is_file(name_or_file))
    return load_hardware(name_or_file);
  const auto root = read_yaml(name_or_file);
  if (!root.find("nodes"))
    return parse_hardware(root, name_or_file);
  return NodeList(name_or_file).read(root);
}

ClusterHardware parse_cluster_hardware(const std::string& yaml,
                                       const std::string& file) {
  const auto root = parse_yaml(yaml, file);
  if (!root.find("nodes"))
    return parse_hardware(root, file);
  return NodeList(file).read(root);
}

} // namespace troupe::plans
