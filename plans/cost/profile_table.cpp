#include "plans/cost/profile_table.hpp"

#include "config/base/error.hpp"
#include "config/yaml/yaml_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

namespace troupe::plans {

namespace {

constexpr std::array profile_ops = {ProfileOp::forward, ProfileOp::train,
                                    ProfileOp::prefill, ProfileOp::decode};

auto profile_key(const ProfileEntry& entry) {
  return std::tuple{entry.op, entry.parameters, entry.tp, entry.tokens};
}

ProfileOp parse_op(const YamlNode& node, const std::string& path) {
  const auto& text = yaml_text(node, path);
  for (const auto op : profile_ops)
    if (text == to_string(op))
      return op;
  yaml_wrong(node, path, "forward, train, prefill or decode", "'" + text + "'");
}

double positive_number(const YamlNode& node, const std::string& path) {
  const auto number = yaml_number(node, path);
  if (!std::isfinite(number) || number <= 0)
    yaml_wrong(node, path, "a positive number", node.text);
  return number;
}

ProfileEntry parse_entry(const YamlNode& node, const std::string& path) {
  ProfileEntry entry;
  for (const auto& [key, value] : node.entries) {
    const auto at = path + "." + key;
    if (key == "op")
      entry.op = parse_op(value, at);
    else if (key == "parameters")
      entry.parameters = static_cast<std::uint64_t>(
        yaml_integer(value, at, 1, std::int64_t{1} << 50));
    else if (key == "tp")
      entry.tp = static_cast<std::uint32_t>(yaml_integer(value, at, 1, 4096));
    else if (key == "tokens")
      entry.tokens = positive_number(value, at);
    else if (key == "median_s")
      entry.median_s = positive_number(value, at);
  }
  if (entry.parameters == 0 || entry.tokens == 0 || entry.median_s == 0)
    throw ConfigError({.place = node.place,
                       .path = path,
                       .expected = "op, parameters, tp, tokens, median_s",
                       .got = describe(node),
                       .hint = "`troupe profile` writes such files"});
  return entry;
}

ProfileTable table_of(const YamlNode& root) {
  std::vector<ProfileEntry> entries;
  if (const auto* list = root.find("profile"))
    for (std::size_t i = 0; i < list->items.size(); ++i)
      entries.push_back(
        parse_entry(list->items[i], fmt::format("profile[{}]", i)));
  return ProfileTable(std::move(entries));
}

} // namespace

std::string_view to_string(ProfileOp op) {
  switch (op) {
  case ProfileOp::forward:
    return "forward";
  case ProfileOp::train:
    return "train";
  case ProfileOp::prefill:
    return "prefill";
  case ProfileOp::decode:
    return "decode";
  }
  return "?";
}

ProfileTable::ProfileTable(std::vector<ProfileEntry> entries)
  : entries_(std::move(entries)) {
  std::ranges::sort(entries_, {}, profile_key);
}

void ProfileTable::scale(ProfileOp op, std::uint64_t parameters,
                         std::uint32_t tp, double times) {
  for (auto& entry : entries_)
    if (entry.op == op && entry.parameters == parameters && entry.tp == tp)
      entry.median_s *= times;
}

std::optional<double> ProfileTable::seconds(ProfileOp op,
                                            std::uint64_t parameters,
                                            std::uint32_t tp,
                                            double tokens) const {
  const auto begin = std::ranges::lower_bound(
    entries_, std::tuple{op, parameters, tp, 0.0}, {}, profile_key);
  auto end = begin;
  while (end != entries_.end() && end->op == op && end->parameters == parameters
         && end->tp == tp)
    ++end;
  if (end - begin < 2 || tokens > 2 * std::prev(end)->tokens)
    return std::nullopt;
  auto above
    = std::ranges::lower_bound(begin, end, tokens, {}, &ProfileEntry::tokens);
  above = std::clamp(above, begin + 1, end - 1);
  const auto& a = *std::prev(above);
  const auto& b = *above;
  const auto slope = (b.median_s - a.median_s) / (b.tokens - a.tokens);
  // Below the smallest size the launch cost remains.
  const auto least = begin->median_s / 4;
  return std::max(least, a.median_s + slope * (tokens - a.tokens));
}

ProfileTable parse_profile(const std::string& yaml, const std::string& file) {
  return table_of(parse_yaml(yaml, file));
}

ProfileTable load_profile(const std::string& file) {
  return table_of(read_yaml(file));
}

std::string print(const ProfileTable& table) {
  std::string text = table.empty() ? "" : "profile:\n";
  for (const auto& entry : table.entries())
    text += fmt::format("  - {{op: {}, parameters: {}, tp: {}, tokens: {:g}, "
                        "median_s: {:.4g}}}\n",
                        to_string(entry.op), entry.parameters, entry.tp,
                        entry.tokens, entry.median_s);
  return text;
}

} // namespace troupe::plans
