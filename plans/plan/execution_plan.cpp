#include "plans/plan/execution_plan.hpp"

#include "config/base/error.hpp"
#include "config/base/text_hash.hpp"
#include "config/yaml/yaml_tree.hpp"
#include "plans/plan/plan_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <stdexcept>

namespace troupe::plans {

namespace {

/// Exceeds the devices of any cluster; keeps a typo from allocating memory.
constexpr std::uint32_t plan_device_limit = 1u << 20;

std::uint32_t take_device(std::string_view& text) {
  std::uint32_t number = 0;
  const auto [end, error]
    = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number >= plan_device_limit)
    throw std::invalid_argument("no list such as 0,2-3");
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take_char(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted)
    return false;
  text.remove_prefix(1);
  return true;
}

[[noreturn]] void plan_wrong(const YamlNode& node, const std::string& path,
                             std::string expected, std::string hint = {}) {
  throw ConfigError({.place = node.place,
                     .path = path,
                     .expected = std::move(expected),
                     .got = describe(node),
                     .hint = std::move(hint)});
}

/// Throws ConfigError for a text that its parser rejected with a sentence.
[[noreturn]] void plan_unreadable(const YamlNode& node, const std::string& path,
                                  std::string expected, const char* why,
                                  std::string hint) {
  throw ConfigError({.place = node.place,
                     .path = path,
                     .expected = std::move(expected),
                     .got = fmt::format("{} ({})", describe(node), why),
                     .hint = std::move(hint)});
}

/// Throws ConfigError because `key` is none of `valid`: names the nearest, or
/// lists them all.
[[noreturn]] void plan_unknown_key(const YamlNode& node,
                                   const std::string& path,
                                   const std::string& key,
                                   const std::vector<std::string>& valid) {
  std::string list;
  for (const auto& name : valid)
    list += (list.empty() ? "" : ", ") + name;
  throw ConfigError({.place = node.place,
                     .path = path.empty() ? key : path + "." + key,
                     .expected = "one of " + list,
                     .got = "'" + key + "'",
                     .hint = nearest(key, valid)});
}

const YamlNode& plan_mapping(const YamlNode& node, const std::string& path) {
  if (!node.is_mapping())
    plan_wrong(node, path, "a mapping");
  return node;
}

std::uint32_t plan_count(const YamlNode& node, const std::string& path,
                         std::int64_t least) {
  return static_cast<std::uint32_t>(
    yaml_integer(node, path, least, plan_device_limit));
}

Cluster parse_cluster(const YamlNode& node) {
  Cluster cluster;
  for (const auto& [key, value] : plan_mapping(node, "cluster").entries) {
    const auto path = "cluster." + key;
    if (key == "nodes")
      cluster.nodes = plan_count(value, path, 1);
    else if (key == "devices_per_node")
      cluster.devices_per_node = plan_count(value, path, 1);
    else if (key == "workers_per_node")
      cluster.workers_per_node = plan_count(value, path, 1);
    else
      plan_unknown_key(value, "cluster", key,
                       {"nodes", "devices_per_node", "workers_per_node"});
  }
  if (cluster.workers_per_node > cluster.devices_per_node)
    plan_wrong(
      *node.find("workers_per_node"), "cluster.workers_per_node",
      fmt::format("at most {} workers, one a device", cluster.devices_per_node),
      std::to_string(cluster.devices_per_node));
  return cluster;
}

/// Parses "0-3", "0,2-3", host, workers, or a list of such: inside braces YAML
/// splits at the comma, so there it is written `{devices: [0, 2-3]}`.
void parse_placement_devices(const YamlNode& node, const std::string& path,
                             Placement& placement) {
  std::string text;
  if (!node.is_sequence())
    text = yaml_text(node, path);
  for (const auto& item : node.items)
    text += (text.empty() ? "" : ",") + yaml_text(item, path);
  placement.on_workers = text == "workers";
  if (placement.on_workers)
    return;
  try {
    placement.devices = parse_devices(text);
  } catch (const std::invalid_argument& error) {
    plan_unreadable(node, path, "devices", error.what(),
                    "0-3, [0, 2-3] or host");
  }
}

Strategy parse_placement_strategy(const YamlNode& node,
                                  const std::string& path) {
  try {
    return parse_strategy(yaml_text(node, path));
  } catch (const std::invalid_argument& error) {
    plan_unreadable(node, path, "a strategy", error.what(), "d4 or d2t2");
  }
}

Placement parse_placement(const YamlNode& node, const std::string& path) {
  Placement placement;
  for (const auto& [key, value] : plan_mapping(node, path).entries) {
    const auto at = path + "." + key;
    if (key == "devices")
      parse_placement_devices(value, at, placement);
    else if (key == "strategy")
      placement.strategy = parse_placement_strategy(value, at);
    else if (key == "micro_batch_tokens")
      placement.micro_batch_tokens
        = yaml_integer(value, at, 0, std::numeric_limits<int>::max());
    else if (key == "micro_batches")
      placement.micro_batches = static_cast<int>(plan_count(value, at, 0));
    else if (key == "chunks")
      placement.chunks = static_cast<int>(plan_count(value, at, 1));
    else if (key == "slices")
      placement.slices = static_cast<int>(plan_count(value, at, 1));
    else if (key == "instances")
      placement.instances = static_cast<int>(plan_count(value, at, 1));
    else if (value.is_null()
             && std::isdigit(static_cast<unsigned char>(key[0])))
      plan_wrong(value, path + ".devices", "devices", "[0, 2-3] inside braces");
    else
      plan_unknown_key(value, path, key,
                       {"devices", "strategy", "micro_batch_tokens",
                        "micro_batches", "chunks", "slices", "instances"});
  }
  if (!node.find("devices"))
    throw ConfigError({.place = node.place,
                       .path = path + ".devices",
                       .expected = "devices",
                       .got = "nothing",
                       .hint = "devices: 0-3, or devices: host for functions"});
  return placement;
}

void parse_offload(const YamlNode& node, const std::string& path,
                   RoleMemory& memory) {
  if (!node.is_sequence())
    plan_wrong(node, path, "a list of weights, optimizer");
  for (const auto& item : node.items) {
    const auto& what = yaml_text(item, path);
    if (what == "weights")
      memory.offload_weights = true;
    else if (what == "optimizer")
      memory.offload_optimizer = true;
    else
      plan_unknown_key(item, path, what, {"weights", "optimizer"});
  }
}

bool parse_keep(const YamlNode& node, const std::string& path) {
  bool keep = false;
  for (const auto& [key, value] : plan_mapping(node, path).entries) {
    if (key != "keep")
      plan_unknown_key(value, path, key, {"keep"});
    keep = yaml_bool(value, path + ".keep");
  }
  return keep;
}

RoleMemory parse_role(const YamlNode& node, const std::string& path) {
  RoleMemory memory;
  for (const auto& [key, value] : plan_mapping(node, path).entries) {
    if (key != "offload")
      plan_unknown_key(value, path, key, {"offload"});
    parse_offload(value, path + ".offload", memory);
  }
  return memory;
}

std::string print_placement(const Placement& placement) {
  const auto devices
    = placement.on_workers ? "workers" : print_devices(placement.devices);
  const bool listed = devices.find(',') != std::string::npos;
  std::string text = "{devices: " + (listed ? "[" + devices + "]" : devices);
  if (!placement.devices.empty() || placement.strategy != Strategy{})
    text += ", strategy: " + to_string(placement.strategy);
  if (placement.micro_batch_tokens != 0)
    text
      += fmt::format(", micro_batch_tokens: {}", placement.micro_batch_tokens);
  if (placement.micro_batches != 0)
    text += fmt::format(", micro_batches: {}", placement.micro_batches);
  if (placement.chunks != 1)
    text += fmt::format(", chunks: {}", placement.chunks);
  if (placement.slices != 1)
    text += fmt::format(", slices: {}", placement.slices);
  if (placement.instances != 0)
    text += fmt::format(", instances: {}", placement.instances);
  return text + "}";
}

std::string print_offload(const RoleMemory& memory) {
  std::string list = memory.offload_weights ? "weights" : "";
  if (memory.offload_optimizer)
    list += list.empty() ? "optimizer" : ", optimizer";
  return fmt::format("{{offload: [{}]}}", list);
}

} // namespace

WorkerId Cluster::worker_of(Rank device) const {
  const auto on_node = device.value % devices_per_node;
  const auto share = devices_per_node / workers_per_node;
  const auto larger = devices_per_node % workers_per_node;
  const auto in_larger = larger * (share + 1);
  const auto local = on_node < in_larger
                       ? on_node / (share + 1)
                       : larger + (on_node - in_larger) / share;
  return WorkerId{node_of(device) * workers_per_node + local};
}

std::vector<Rank> Cluster::devices_of(WorkerId worker) const {
  std::vector<Rank> devices;
  const auto node = worker.value / workers_per_node;
  for (std::uint32_t i = 0; i < devices_per_node; ++i)
    if (const Rank rank{node * devices_per_node + i}; worker_of(rank) == worker)
      devices.push_back(rank);
  return devices;
}

std::uint32_t ExecutionPlan::lag_of(const std::string& call) const {
  const auto found = lag.find(call);
  return found == lag.end() ? 0 : found->second;
}

std::uint32_t ExecutionPlan::slices_of(const std::string& call) const {
  const auto found = calls.find(call);
  return found == calls.end()
           ? 1
           : static_cast<std::uint32_t>(std::max(found->second.slices, 1));
}

std::uint32_t ExecutionPlan::most_lag_of(const std::string& call) const {
  return lag_of(call) + slices_of(call) - 1;
}

bool ExecutionPlan::lags() const {
  const auto is_positive = [](const auto& one) { return one.second > 0; };
  const auto is_cut = [](const auto& one) { return one.second.slices > 1; };
  return std::ranges::any_of(lag, is_positive)
         || std::ranges::any_of(calls, is_cut);
}

std::string print_devices(const std::vector<Rank>& devices) {
  if (devices.empty())
    return "host";
  std::string text;
  for (std::size_t i = 0; i < devices.size();) {
    std::size_t last = i;
    while (last + 1 < devices.size()
           && devices[last + 1].value == devices[last].value + 1)
      ++last;
    text += text.empty() ? "" : ",";
    text += last == i
              ? to_string(devices[i])
              : fmt::format("{}-{}", devices[i].value, devices[last].value);
    i = last + 1;
  }
  return text;
}

std::vector<Rank> parse_devices(std::string_view text) {
  std::vector<Rank> devices;
  if (text == "host")
    return devices;
  do {
    const auto first = take_device(text);
    const auto last = take_char(text, '-') ? take_device(text) : first;
    if (last < first)
      throw std::invalid_argument(fmt::format(
        "{}-{} runs backwards, write {}-{}", first, last, last, first));
    for (auto rank = first; rank <= last; ++rank)
      devices.emplace_back(rank);
  } while (take_char(text, ','));
  if (!text.empty())
    throw std::invalid_argument("no list such as 0,2-3");
  std::ranges::sort(devices);
  if (const auto twice = std::ranges::adjacent_find(devices);
      twice != devices.end())
    throw std::invalid_argument(
      fmt::format("device {} occurs twice", twice->value));
  return devices;
}

ExecutionPlan parse_plan(const std::string& yaml, const std::string& file) {
  ExecutionPlan plan;
  const auto root = parse_yaml(yaml, file);
  for (const auto& [key, value] : plan_mapping(root, "").entries) {
    if (key == "cluster") {
      plan.cluster = parse_cluster(value);
      continue;
    }
    const std::vector<std::string> keys
      = {"cluster", "calls", "replicas", "roles", "lag"};
    if (std::ranges::find(keys, key) == keys.end())
      plan_unknown_key(value, "", key, keys);
    for (const auto& [name, node] : plan_mapping(value, key).entries) {
      const auto path = key + "." + name;
      if (key == "calls")
        plan.calls[name] = parse_placement(node, path);
      else if (key == "replicas")
        plan.replicas[name] = parse_keep(node, path);
      else if (key == "roles")
        plan.roles[name] = parse_role(node, path);
      else
        plan.lag[name] = plan_count(node, path, 0);
    }
  }
  if (plan.calls.empty())
    throw ConfigError({.place = root.place,
                       .path = "calls",
                       .expected = "a mapping from calls to devices",
                       .got = "nothing",
                       .hint = "`troupe plan show CONFIG` for an example"});
  return plan;
}

std::string print(const ExecutionPlan& plan) {
  const auto& cluster = plan.cluster;
  std::string text = fmt::format(
    "cluster: {{nodes: {}, devices_per_node: {}, workers_per_node: {}}}\n",
    cluster.nodes, cluster.devices_per_node, cluster.workers_per_node);
  text += "calls:\n";
  for (const auto& [name, placement] : plan.calls)
    text += fmt::format("  {}: {}\n", print_yaml_scalar(name),
                        print_placement(placement));
  text += plan.replicas.empty() ? "" : "replicas:\n";
  for (const auto& [name, keep] : plan.replicas)
    text += fmt::format("  {}: {{keep: {}}}\n", print_yaml_scalar(name), keep);
  text += plan.roles.empty() ? "" : "roles:\n";
  for (const auto& [name, memory] : plan.roles)
    text += fmt::format("  {}: {}\n", print_yaml_scalar(name),
                        print_offload(memory));
  text += plan.lag.empty() ? "" : "lag:\n";
  for (const auto& [name, lag] : plan.lag)
    text += fmt::format("  {}: {}\n", print_yaml_scalar(name), lag);
  return text;
}

std::uint64_t hash(const ExecutionPlan& plan) {
  return text_hash(print(plan));
}

} // namespace troupe::plans
