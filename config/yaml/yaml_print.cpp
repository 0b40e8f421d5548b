#include "config/yaml/yaml_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace troupe {

namespace {

/// Width up to which a mapping or list of scalars is written on one line.
constexpr std::size_t flow_width = 72;

bool reads_as_null(std::string_view text) {
  static constexpr std::array<std::string_view, 4> words
    = {"null", "Null", "NULL", "~"};
  return std::ranges::find(words, text) != words.end();
}

bool is_plain(std::string_view text) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ')
    return false;
  constexpr std::string_view no_start = ",[]{}#&*!|>'\"%@`=<";
  if (no_start.find(text.front()) != no_start.npos || reads_as_null(text))
    return false;
  // "- x" is an item of a list, "-5" a number
  constexpr std::string_view no_lone_start = "-?:";
  if (no_lone_start.find(text.front()) != no_lone_start.npos
      && (text.size() == 1 || text[1] == ' '))
    return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f
        || std::string_view(",[]{}#\"").find(c) != std::string_view::npos)
      return false;
    // ": " starts a value, also at the end and before flow indicators
    if (c == ':' && (i + 1 == text.size() || text[i + 1] == ' '))
      return false;
  }
  return text != "---" && text != "...";
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

bool is_leaf(const YamlNode& node) {
  return node.is_scalar() || node.is_null()
         || (node.items.empty() && node.entries.empty());
}

bool fits_flow(const YamlNode& node) {
  const bool simple
    = std::ranges::all_of(node.items, is_leaf)
      && std::ranges::all_of(node.entries, [](const auto& entry) {
           return is_leaf(entry.second)
                  || (entry.second.is_sequence()
                      && std::ranges::all_of(entry.second.items, is_leaf));
         });
  return is_leaf(node)
         || (simple && print_yaml_flow(node).size() <= flow_width);
}

void print_block(const YamlNode& node, int indent, std::string& out) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  auto print_child = [&](const std::string& head, const YamlNode& value) {
    if (fits_flow(value)) {
      out += margin + head + " " + print_yaml_flow(value) + "\n";
      return;
    }
    out += margin + head + "\n";
    print_block(value, indent + 2, out);
  };
  for (const auto& item : node.items)
    print_child("-", item);
  for (const auto& [key, value] : node.entries)
    print_child(print_yaml_scalar(key) + ":", value);
}

} // namespace

std::string print_yaml_scalar(std::string_view text, bool force_quotes) {
  return force_quotes || !is_plain(text) ? quote(text) : std::string(text);
}

std::string print_yaml_flow(const YamlNode& node) {
  std::string out;
  switch (node.kind) {
  case YamlNode::Kind::null:
    return "null";
  case YamlNode::Kind::scalar:
    return print_yaml_scalar(node.text, node.quoted);
  case YamlNode::Kind::sequence:
    for (const auto& item : node.items)
      out += (out.empty() ? "" : ", ") + print_yaml_flow(item);
    return "[" + out + "]";
  case YamlNode::Kind::mapping:
    for (const auto& [key, value] : node.entries)
      out += (out.empty() ? "" : ", ") + print_yaml_scalar(key) + ": "
             + print_yaml_flow(value);
    return "{" + out + "}";
  }
  return out;
}

std::string print_yaml(const YamlNode& node, int indent) {
  std::string out;
  if (is_leaf(node))
    return std::string(static_cast<std::size_t>(indent), ' ')
           + print_yaml_flow(node) + "\n";
  print_block(node, indent, out);
  return out;
}

} // namespace troupe
