#include "plans/cost/hardware.hpp"

#include "config/base/error.hpp"
#include "config/yaml/yaml_tree.hpp"
#include "plans/plan/plan_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace troupe::plans {

namespace {

const HardwareField* find_field(const std::string& path) {
  for (const auto& field : hardware_fields())
    if (path == fmt::format("{}.{}", field.section, field.name))
      return &field;
  return nullptr;
}

void read_field(Hardware& hardware, const std::string& path,
                const YamlNode& node, const std::string& file) {
  const auto* field = find_field(path);
  if (!field) {
    std::vector<std::string> names;
    for (const auto& one : hardware_fields())
      names.push_back(fmt::format("{}.{}", one.section, one.name));
    const auto near = nearest(path, names);
    yaml_wrong(node, path, "a number of the hardware file", "'" + path + "'",
               near.empty() ? "" : "'" + near + "'");
  }
  const auto* value = node.is_mapping() ? node.find("value") : &node;
  if (!value)
    yaml_wrong(node, path, "value and source", "no value");
  const auto number = yaml_number(*value, path);
  if (!std::isfinite(number) || number < 0
      || (number == 0 && !field->may_be_zero))
    yaml_wrong(*value, path,
               fmt::format("a positive number of {}", field->unit),
               value->text);
  if (field->value == &Hardware::crowded_share && number > 1)
    yaml_wrong(*value, path, "a share of 1 at most", value->text,
               "cores of a node / devices_per_node");
  hardware.*(field->value) = number;
  const auto* source = node.is_mapping() ? node.find("source") : nullptr;
  hardware.sources[path] = source ? yaml_text(*source, path + ".source") : file;
}

void read_section(Hardware& hardware, const std::string& section,
                  const YamlNode& node, const std::string& file) {
  if (!node.is_mapping())
    yaml_wrong(node, section, "a mapping", describe(node));
  for (const auto& [key, value] : node.entries)
    read_field(hardware, section + "." + key, value, file);
}

/// Throws unless every number that the formulas divide by is there.
void need_fields(const Hardware& hardware, const Place& place) {
  for (const auto& field : hardware_fields())
    if (!field.may_be_zero && hardware.*(field.value) <= 0)
      throw ConfigError(
        {.place = place,
         .path = fmt::format("{}.{}", field.section, field.name),
         .expected = fmt::format("a positive number of {}", field.unit),
         .got = "nothing",
         .hint = "troupe profile CONFIG --out FILE, or a shipped one: "
                 + fmt::format("{}", fmt::join(shipped_hardware(), ", "))});
}

} // namespace

const std::vector<HardwareField>& hardware_fields() {
  using H = Hardware;
  static const std::vector<HardwareField> fields = {
    {"device", "mem_bytes", &H::mem_bytes, "bytes", true},
    {"device", "reserve_bytes", &H::reserve_bytes, "bytes", true},
    {"device", "gemm_flops", &H::gemm_flops, "FLOP/s", false},
    {"device", "gemm_width_half", &H::gemm_width_half, "columns", true},
    {"device", "attn_flops", &H::attn_flops, "FLOP/s", false},
    {"device", "compute_capability", &H::compute_capability, "version", true},
    {"device", "mem_Bps", &H::mem_Bps, "bytes/s", false},
    {"device", "cache_Bps", &H::cache_Bps, "bytes/s", true},
    {"device", "optimizer_Bps", &H::optimizer_Bps, "bytes/s", true},
    {"device", "crowded_share", &H::crowded_share, "share", true},
    {"host", "mem_bytes", &H::host_mem_bytes, "bytes", true},
    {"host", "launch_layer_s", &H::launch_layer_s, "s", true},
    {"host", "launch_s", &H::launch_s, "s", true},
    {"host", "copy_s", &H::copy_s, "s", true},
    {"host", "launch_tp_extra_s", &H::launch_tp_extra_s, "s", true},
    {"host", "launch_graph_s", &H::launch_graph_s, "s", true},
    {"host", "graph_gap_s", &H::graph_gap_s, "s", true},
    {"host", "stage_token_s", &H::stage_token_s, "s", true},
    {"host", "call_s", &H::call_s, "s", true},
    {"host", "call_device_s", &H::call_device_s, "s", true},
    {"host", "opt_step_s", &H::opt_step_s, "s", true},
    {"host", "move_s", &H::move_s, "s", true},
    {"links", "intra_Bps", &H::intra_Bps, "bytes/s", false},
    {"links", "intra_lat_s", &H::intra_lat_s, "s", true},
    {"links", "inter_Bps", &H::inter_Bps, "bytes/s", false},
    {"links", "inter_lat_s", &H::inter_lat_s, "s", true},
    {"links", "host_Bps", &H::host_Bps, "bytes/s", false},
    {"links", "zero_Bps", &H::zero_Bps, "bytes/s", false},
    {"links", "sum_Bps", &H::sum_Bps, "bytes/s", true},
    {"links", "move_Bps", &H::move_Bps, "bytes/s", true},
    {"links", "gather_Bps", &H::gather_Bps, "bytes/s", true},
    {"engines", "dschat_compute", &H::dschat_compute, "times", false},
    {"engines", "dschat_decode_layer_s", &H::dschat_decode_layer_s, "s", true},
    {"engines", "openrlhf_compute", &H::openrlhf_compute, "times", false},
    {"engines", "openrlhf_rounds", &H::openrlhf_rounds, "rounds", false}};
  return fields;
}

void set_number(Hardware& hardware, const std::string& path, double value,
                const std::string& source) {
  const auto* field = find_field(path);
  TROUPE_CHECK(field != nullptr, fmt::format("no number '{}'", path));
  hardware.*(field->value) = value;
  hardware.sources[path] = source;
}

Hardware parse_hardware(const std::string& yaml, const std::string& file) {
  return parse_hardware(parse_yaml(yaml, file), file);
}

Hardware parse_hardware(const YamlNode& root, const std::string& file) {
  Hardware hardware;
  if (!root.is_mapping())
    yaml_wrong(root, "", "a mapping", describe(root));
  const std::vector<std::string> sections
    = {"device", "host", "links", "engines"};
  for (const auto& [key, value] : root.entries) {
    if (key == "name")
      hardware.name = yaml_text(value, key);
    else if (key == "devices_per_node")
      hardware.devices_per_node
        = static_cast<std::uint32_t>(yaml_integer(value, key, 1, 1 << 20));
    else if (key == "profile")
      continue; // read by profile_table
    else if (std::ranges::find(sections, key) != sections.end())
      read_section(hardware, key, value, file);
    else
      yaml_wrong(value, key,
                 "one of name, devices_per_node, device, host, links, "
                 "engines, profile",
                 "'" + key + "'", nearest(key, sections));
  }
  need_fields(hardware, root.place);
  if (hardware.cache_Bps == 0 && hardware.mem_bytes == 0)
    hardware.cache_Bps = host_cache_share * hardware.mem_Bps;
  return hardware;
}

Hardware load_hardware(const std::string& name_or_file) {
  const auto& names = shipped_hardware();
  if (std::ranges::find(names, name_or_file) != names.end())
    return parse_hardware(shipped_hardware_text(name_or_file), name_or_file);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(name_or_file, ignored))
    throw ConfigError(
      {.place = {"command line", 0},
       .path = "--hardware",
       .expected = fmt::format("one of {} or a file", fmt::join(names, ", ")),
       .got = "'" + name_or_file + "'",
       .hint = quoted_nearest(name_or_file, names)});
  return parse_hardware(read_yaml(name_or_file), name_or_file);
}

std::string of_another_machine(const Hardware& hardware,
                               const std::string& file,
                               const std::string& here) {
  if (!hardware.name.starts_with("profiled on ") || here.empty()
      || hardware.name == here)
    return "";
  return fmt::format("warning: {} was {}, this machine is not: predictions are "
                     "for that one; `troupe profile` measures this one",
                     file, hardware.name);
}

std::string print(const Hardware& hardware) {
  auto text
    = fmt::format("name: {}\ndevices_per_node: {}\n",
                  print_yaml_scalar(hardware.name), hardware.devices_per_node);
  std::string section;
  for (const auto& field : hardware_fields()) {
    const auto path = fmt::format("{}.{}", field.section, field.name);
    const auto source = hardware.sources.find(path);
    if (source == hardware.sources.end())
      continue;
    if (section != field.section)
      text += fmt::format("{}:\n", section = field.section);
    text += fmt::format("  {}: {{value: {:.6g}, source: {}}} # {}\n",
                        field.name, hardware.*(field.value),
                        print_yaml_scalar(source->second, true), field.unit);
  }
  return text;
}

} // namespace troupe::plans
