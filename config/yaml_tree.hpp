// A YAML document as plain values that remember where they stood: mappings keep
// their order, scalars their text. Settings and plan files are read through
// this; yaml-cpp stays in the source.
#pragma once

#include "config/error.hpp"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

struct YamlNode {
  enum class Kind { null, scalar, sequence, mapping };
  Kind kind = Kind::null;
  std::string text;    ///< scalar: as written, quotes removed
  bool quoted = false; ///< scalar: quotes make it text, never number or null
  Place place;
  std::vector<YamlNode> items;                           ///< sequence
  std::vector<std::pair<std::string, YamlNode>> entries; ///< mapping, in order
  bool replaces = false; ///< mapping: merging it removes what was there

  bool is_null() const {
    return kind == Kind::null;
  }
  bool is_scalar() const {
    return kind == Kind::scalar;
  }
  bool is_sequence() const {
    return kind == Kind::sequence;
  }
  bool is_mapping() const {
    return kind == Kind::mapping;
  }
  /// The entry of a mapping, else nullptr.
  const YamlNode* find(std::string_view key) const;
  YamlNode* find(std::string_view key);
  /// Like `find`, over "a.b.c"; keys with dots in them are not found.
  const YamlNode* find_path(std::string_view dotted) const;
};

/// Parses one document; an empty one gives an empty mapping. Throws ConfigError
/// with FILE:LINE for bad syntax, a key standing twice, several documents, or
/// aliases that blow up.
YamlNode parse_yaml(const std::string& text, const std::string& file_name);
/// Reads and parses `file`. Throws ConfigError if it cannot be read.
YamlNode read_yaml(const std::string& file);

/// Lays `over` on `base`: mappings merge key by key unless they replace,
/// anything else replaces, a null removes.
void merge_yaml(YamlNode& base, const YamlNode& over);
/// Block style, 2 spaces a level; small mappings of scalars in flow style.
/// Parses back to the same tree, places aside.
std::string print_yaml(const YamlNode& node, int indent = 0);
/// The same on one line.
std::string print_yaml_flow(const YamlNode& node);
/// A scalar as it must be written in YAML: quoted where its text would read as
/// something else.
std::string print_yaml_scalar(std::string_view text, bool force_quotes = false);

/// Whether all of `text` is a T, which `value` then is; it may begin with a +.
template <class T>
bool read_whole(std::string_view text, T& value) {
  if (text.starts_with('+'))
    text.remove_prefix(1);
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc{} && end == last && !text.empty();
}

/// "'text'", "a list", "a mapping" or "nothing": for `got` in ConfigError.
std::string describe(const YamlNode& node);

/// Reads a scalar as a number or truth value. Throws ConfigError with `path`,
/// the node's place and "expected `expected`".
std::int64_t yaml_integer(const YamlNode& node, const std::string& path,
                          std::int64_t least, std::int64_t most);
double yaml_number(const YamlNode& node, const std::string& path);
bool yaml_bool(const YamlNode& node, const std::string& path);
const std::string& yaml_text(const YamlNode& node, const std::string& path);

} // namespace troupe
