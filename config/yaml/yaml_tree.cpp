#include "config/yaml/yaml_tree.hpp"

#include "config/base/defaults.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace troupe {

namespace {

/// Limit of nodes: aliases copy, so a file of a few lines could otherwise
/// exhaust memory.
constexpr std::size_t yaml_nodes_limit = 100'000;
/// Limit of depth: an alias inside its own anchor never ends.
constexpr std::size_t yaml_levels_limit = 100;
/// Length at which a message cuts a quoted text.
constexpr std::size_t shown_text_limit = 200;

[[noreturn]] void yaml_mismatch(const YamlNode& node, const std::string& path,
                                const std::string& expected,
                                const std::string& hint = {}) {
  yaml_wrong(node, path, expected, describe(node), hint);
}

class YamlConverter {
public:
  YamlConverter(std::string file, RepeatedKeys repeats)
    : file_(std::move(file)),
      repeats_(repeats) {}

  YamlNode convert(const YAML::Node& source, int parent_line,
                   const std::string& path = {}) {
    YamlNode node;
    node.place = {file_, line_of(source, parent_line)};
    check_limit(++count_, yaml_nodes_limit, "YAML values", node.place);
    check_limit(++level_, yaml_levels_limit, "values in each other",
                node.place);
    if (source.IsScalar())
      convert_scalar(source, node);
    else if (source.IsSequence())
      convert_sequence(source, node, path);
    else if (source.IsMap())
      convert_mapping(source, node, path);
    --level_;
    return node;
  }

private:
  static void check_limit(std::size_t number, std::size_t most,
                          const char* what, const Place& place) {
    if (number > most)
      throw ConfigError({.place = place,
                         .path = "",
                         .expected = fmt::format("at most {} {}", most, what),
                         .got = "more",
                         .hint = "fewer aliases, none of what it is in"});
  }

  static int line_of(const YAML::Node& source, int parent_line) {
    const YAML::Mark mark = source.Mark();
    return mark.line >= 0 ? mark.line + 1 : parent_line;
  }

  static void convert_scalar(const YAML::Node& source, YamlNode& node) {
    node.text = source.Scalar();
    node.quoted = source.Tag() == "!"; // yaml-cpp's mark of a quoted scalar
    const bool null
      = !node.quoted
        && (node.text.empty() || node.text == "~" || node.text == "null"
            || node.text == "Null" || node.text == "NULL");
    node.kind = null ? YamlNode::Kind::null : YamlNode::Kind::scalar;
  }

  void convert_sequence(const YAML::Node& source, YamlNode& node,
                        const std::string& path) {
    node.kind = YamlNode::Kind::sequence;
    for (const auto& item : source)
      node.items.push_back(convert(item, node.place.line, path));
  }

  void convert_mapping(const YAML::Node& source, YamlNode& node,
                       const std::string& path) {
    node.kind = YamlNode::Kind::mapping;
    std::vector<YamlNode> merged;
    for (const auto& entry : source) {
      const int line = line_of(entry.first, node.place.line);
      if (!entry.first.IsScalar())
        throw ConfigError({.place = {file_, line},
                           .path = "",
                           .expected = "a name before ':'",
                           .got = "a list or a mapping",
                           .hint = "quotes"});
      const std::string& key = entry.first.Scalar();
      const auto at = path.empty() ? key : path + "." + key;
      if (key == "<<" && entry.first.Tag() != "!") {
        take_merged(convert(entry.second, line, path), at, merged);
        continue;
      }
      const YamlNode* first = node.find(key);
      if (first && repeats_ == RepeatedKeys::are_refused)
        throw ConfigError(
          {.place = {file_, line},
           .path = at,
           .expected = "each key once",
           .got = fmt::format("it again (first on line {})", first->place.line),
           .hint = "deleting one of the two"});
      YamlNode value = convert(entry.second, line, at);
      value.place.line = line; // users look for the key's line
      if (first)
        *node.find(key) = std::move(value);
      else
        node.entries.emplace_back(key, std::move(value));
    }
    for (auto& other : merged)
      for (auto& entry : other.entries)
        if (node.find(entry.first) == nullptr)
          node.entries.push_back(std::move(entry));
  }

  /// Collects the merge keys `<<: *base` or `<<: [*one, *two]`: mappings whose
  /// entries apply where the mapping itself has none.
  static void take_merged(YamlNode value, const std::string& path,
                          std::vector<YamlNode>& merged) {
    std::vector<YamlNode> all{value};
    if (value.is_sequence())
      all = std::move(value.items);
    for (auto& other : all) {
      if (!other.is_mapping())
        yaml_mismatch(other, path, "a mapping or a list of mappings");
      merged.push_back(std::move(other));
    }
  }

  std::string file_;
  RepeatedKeys repeats_;
  std::size_t count_ = 0;
  std::size_t level_ = 0; ///< recursion depth of `convert`
};

/// Parses a document and records only where it starts.
class DocumentStart : public YAML::EventHandler {
public:
  int line = 0; ///< counted from 1; 0: no document

  void OnDocumentStart(const YAML::Mark& mark) override {
    line = mark.line + 1;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

/// Throws if a tab precedes a key: the most frequent cause of invalid YAML, and
/// invisible. `last` is the line where the parser stopped; 0: unknown.
void check_no_tabs(const std::string& text, const std::string& file_name,
                   int last) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (last > 0 && number > last)
      return;
    const auto indent = line.substr(0, line.find_first_not_of(" \t"));
    if (indent.find('\t') != indent.npos)
      throw ConfigError({.place = {file_name, number},
                         .path = "",
                         .expected = "an indent of spaces",
                         .got = "a tab",
                         .hint = "two spaces in its place"});
  }
}

/// Returns the line of a second document, 0 if `text` is a single one.
/// YAML::LoadAll would also find it, but does not terminate on some broken
/// texts: yaml-cpp 0.7 finds empty documents there endlessly.
int second_document_line(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart first;
  DocumentStart second;
  if (parser.HandleNextDocument(first) && parser.HandleNextDocument(second))
    return second.line;
  return 0;
}

} // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name == key)
      return &value;
  return nullptr;
}

YamlNode* YamlNode::find(std::string_view key) {
  return const_cast<YamlNode*>(std::as_const(*this).find(key));
}

const YamlNode* YamlNode::find_path(std::string_view dotted) const {
  const YamlNode* node = this;
  while (node && !dotted.empty()) {
    const auto dot = dotted.find('.');
    node = node->find(dotted.substr(0, dot));
    dotted = dot == dotted.npos ? "" : dotted.substr(dot + 1);
  }
  return node;
}

YamlNode parse_yaml(const std::string& text, const std::string& file_name,
                    RepeatedKeys repeats) {
  YAML::Node document;
  int second_line = 0;
  try {
    document = YAML::Load(text);
    second_line = second_document_line(text);
  } catch (const YAML::Exception& error) {
    const int line = error.mark.line >= 0 ? error.mark.line + 1 : 0;
    check_no_tabs(text, file_name, line);
    throw ConfigError({.place = {file_name, line},
                       .path = "",
                       .expected = "YAML",
                       .got = fmt::format("something else ({})", error.msg),
                       .hint = "two spaces an indent, and quotes around texts "
                               "with : or #"});
  }
  if (second_line > 0)
    throw ConfigError({.place = {file_name, second_line},
                       .path = "",
                       .expected = "one YAML document",
                       .got = "a second",
                       .hint = "removing '---'"});
  if (!document.IsDefined() || document.IsNull()) {
    YamlNode empty;
    empty.kind = YamlNode::Kind::mapping;
    empty.place = {file_name, 1};
    return empty;
  }
  return YamlConverter(file_name, repeats).convert(document, 1);
}

YamlNode read_yaml(const std::string& file) {
  std::error_code error;
  std::ifstream stream(file, std::ios::binary);
  // a folder can be opened but not read
  if (!stream || std::filesystem::is_directory(file, error))
    throw ConfigError({.place = {file, 0},
                       .path = "",
                       .expected = "a readable YAML file",
                       .got = "none",
                       .hint = "examples/tiny/ppo.yaml"});
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (text.size() > defaults::settings_file_limit_bytes)
    throw ConfigError({.place = {file, 0},
                       .path = "",
                       .expected = "a YAML file of at most 4 MiB",
                       .got = "a larger one",
                       .hint = "the settings alone"});
  return parse_yaml(text, file);
}

void merge_yaml(YamlNode& base, const YamlNode& over) {
  if (!over.is_mapping()) {
    base = over;
    return;
  }
  if (!base.is_mapping() || over.replaces) {
    base = {};
    base.kind = YamlNode::Kind::mapping;
    base.place = over.place;
  }
  for (const auto& [key, value] : over.entries) {
    if (value.is_null()) {
      std::erase_if(base.entries,
                    [&key](const auto& entry) { return entry.first == key; });
      continue;
    }
    YamlNode* old = base.find(key);
    if (!old)
      old = &base.entries.emplace_back(key, YamlNode{}).second;
    merge_yaml(*old, value);
  }
}

void yaml_wrong(const YamlNode& node, const std::string& path,
                const std::string& expected, const std::string& got,
                const std::string& hint) {
  throw ConfigError({.place = node.place,
                     .path = path,
                     .expected = expected,
                     .got = got,
                     .hint = hint});
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
  case YamlNode::Kind::null:
    return "nothing";
  case YamlNode::Kind::scalar:
    return node.text.size() <= shown_text_limit
             ? "'" + node.text + "'"
             : "'" + node.text.substr(0, shown_text_limit) + "'...";
  case YamlNode::Kind::sequence:
    return "a list";
  case YamlNode::Kind::mapping:
    return "a mapping";
  }
  return "?";
}

std::int64_t yaml_integer(const YamlNode& node, const std::string& path,
                          std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const bool whole
    = node.is_scalar() && !node.quoted && read_whole(node.text, value);
  if (whole && value >= least && value <= most)
    return value;
  const std::string expected
    = most == INT64_MAX || most == INT32_MAX
        ? fmt::format("a whole number >= {}", least)
        : fmt::format("a whole number from {} to {}", least, most);
  std::string hint;
  double real = 0;
  if (whole)
    hint = std::to_string(std::clamp(value, least, most));
  else if (node.is_scalar() && read_whole(node.text, real)
           && std::abs(real) < 1e15)
    hint = std::to_string(
      std::clamp(static_cast<std::int64_t>(std::llround(real)), least, most));
  yaml_mismatch(node, path, expected, hint);
}

double yaml_number(const YamlNode& node, const std::string& path) {
  double value = 0;
  if (node.is_scalar() && !node.quoted && read_whole(node.text, value)
      && std::isfinite(value))
    return value;
  yaml_mismatch(node, path, "a number");
}

bool yaml_bool(const YamlNode& node, const std::string& path) {
  static const std::vector<std::string> yes = {"true", "True", "yes", "on"};
  static const std::vector<std::string> no = {"false", "False", "no", "off"};
  if (node.is_scalar() && !node.quoted) {
    if (std::ranges::find(yes, node.text) != yes.end())
      return true;
    if (std::ranges::find(no, node.text) != no.end())
      return false;
  }
  yaml_mismatch(node, path, "true or false");
}

const std::string& yaml_text(const YamlNode& node, const std::string& path) {
  if (!node.is_scalar())
    yaml_mismatch(node, path, "text");
  return node.text;
}

} // namespace troupe
