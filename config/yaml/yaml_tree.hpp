// A YAML document as plain values with their source positions: mappings keep
// their order, scalars their text. Settings and plan files are read through it;
// yaml-cpp stays in the source.
#pragma once

#include "config/base/error.hpp"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

struct YamlEntry;

struct YamlNode {
  enum class Kind { null, scalar, sequence, mapping };
  Kind kind = Kind::null;
  std::string text;    ///< scalar: as written, without quotes
  bool quoted = false; ///< scalar: quoted, so text, never number or null
  Place place;
  std::vector<YamlNode> items;    ///< sequence
  std::vector<YamlEntry> entries; ///< mapping, in order
  bool replaces = false; ///< mapping: merging it removes the previous entries

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
  /// Returns the entry of a mapping, else nullptr.
  const YamlNode* find(std::string_view key) const;
  YamlNode* find(std::string_view key);
  /// Returns the entry at "a.b.c", else nullptr; keys that contain dots are not
  /// found.
  const YamlNode* find_path(std::string_view dotted) const;
};

/// An entry of a mapping, with the names that std::pair has: clang does not
/// take a pair of a class within that class.
struct YamlEntry {
  std::string first;
  YamlNode second;
};

/// Keys that a mapping has twice: mistakes in our files, while Python's
/// readers, for which other systems' files were written, take the last one.
enum class RepeatedKeys : std::uint8_t { are_refused, last_one_counts };

/// Parses one document; an empty one yields an empty mapping. Throws
/// ConfigError with FILE:LINE for bad syntax, a repeated key, several
/// documents, or aliases that expand too far.
YamlNode parse_yaml(const std::string& text, const std::string& file_name,
                    RepeatedKeys repeats = RepeatedKeys::are_refused);
/// Reads and parses `file`. Throws ConfigError if it cannot be read.
YamlNode read_yaml(const std::string& file);

/// Merges `over` into `base`: mappings merge key by key unless they replace,
/// anything else replaces, a null removes.
void merge_yaml(YamlNode& base, const YamlNode& over);
/// Prints block style with 2 spaces per level; small mappings of scalars in
/// flow style. Parses back to the same tree, except for places.
std::string print_yaml(const YamlNode& node, int indent = 0);
/// Prints the same on one line.
std::string print_yaml_flow(const YamlNode& node);
/// Returns a scalar as YAML: quoted if its text would otherwise read as
/// something else.
std::string print_yaml_scalar(std::string_view text, bool force_quotes = false);

/// Returns true and sets `value` if all of `text` is a T; a leading + is
/// allowed.
template <class T>
bool read_whole(std::string_view text, T& value) {
  if (text.starts_with('+'))
    text.remove_prefix(1);
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc{} && end == last && !text.empty();
}

/// Returns "'text'", "a list", "a mapping" or "nothing": for `got` in
/// ConfigError.
std::string describe(const YamlNode& node);
/// Throws the ConfigError of a value at its place in the file.
[[noreturn]] void yaml_wrong(const YamlNode& node, const std::string& path,
                             const std::string& expected,
                             const std::string& got,
                             const std::string& hint = {});

/// Reads a scalar as a number or boolean. Throws ConfigError with `path`, the
/// node's place and "expected `expected`".
std::int64_t yaml_integer(const YamlNode& node, const std::string& path,
                          std::int64_t least, std::int64_t most);
double yaml_number(const YamlNode& node, const std::string& path);
bool yaml_bool(const YamlNode& node, const std::string& path);
const std::string& yaml_text(const YamlNode& node, const std::string& path);

} // namespace troupe
