// Conversion of setting values to and from YAML (declared in
// settings_schema.hpp).
#include "config/base/did_you_mean.hpp"
#include "config/settings/data_files.hpp"
#include "config/settings/settings_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe {

namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

/// Returns the shortest text that reads back as the same number, with a dot
/// before an exponent, without which YAML 1.1 readers see text.
std::string number_text(double value) {
  auto text = fmt::format("{}", value);
  const auto exponent = text.find('e');
  if (exponent != text.npos && text.find('.') == text.npos)
    text.insert(exponent, ".0");
  return text;
}

YamlNode scalar_node(std::string text, bool quoted = false) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = std::move(text);
  node.quoted = quoted;
  return node;
}

YamlNode list_node(std::vector<YamlNode> items) {
  YamlNode node;
  node.kind = YamlNode::Kind::sequence;
  node.items = std::move(items);
  return node;
}

/// Reads one value, with errors that name the field.
class ValueReader {
public:
  ValueReader(const Field& field, const YamlNode& node, const std::string& path)
    : field_(field),
      node_(node),
      path_(path) {}

  double number(const YamlNode& node) const {
    double value = 0;
    if (!node.is_scalar() || node.quoted || !read_whole(node.text, value)
        || !std::isfinite(value))
      fail(default_hint());
    if (!in_range(value))
      fail(default_hint());
    return value;
  }
  template <class T>
  T integer() const {
    T value = 0;
    const bool whole
      = node_.is_scalar() && !node_.quoted && read_whole(node_.text, value);
    if (!whole || !in_range(static_cast<double>(value)))
      fail(integer_hint());
    return value;
  }
  bool truth() const {
    if (node_.is_scalar() && !node_.quoted) {
      if (node_.text == "1")
        fail("true");
      if (node_.text == "0")
        fail("false");
    }
    try {
      return yaml_bool(node_, path_);
    } catch (const ConfigError&) {
      fail(default_hint());
    }
  }
  const std::string& text() const {
    if (!node_.is_scalar())
      fail(default_hint());
    const auto choices = choices_of(field_);
    const bool user
      = field_.is_own_choice != nullptr && field_.is_own_choice(node_.text);
    if (!choices.empty() && !user
        && std::ranges::find(choices, node_.text) == choices.end())
      fail(nearest_word(node_.text, choices));
    if (field_.fits_shape && !field_.fits_shape(node_.text))
      fail(default_hint());
    return node_.text;
  }
  float float_number() const {
    const auto value = static_cast<float>(number(node_));
    if (!std::isfinite(value))
      fail(default_hint());
    return value;
  }
  std::vector<std::string> texts() const {
    if (!node_.is_sequence())
      fail(node_.is_scalar() ? fmt::format("[{}]", node_.text) : "");
    std::vector<std::string> all;
    for (const auto& item : node_.items) {
      if (!item.is_scalar()
          || (field_.fits_shape && !field_.fits_shape(item.text)))
        fail("");
      all.push_back(item.text);
    }
    return all;
  }
  [[noreturn]] void fail(const std::string& hint) const {
    throw ConfigError({.place = node_.place,
                       .path = path_,
                       .expected = expected_text(field_),
                       .got = got(),
                       .hint = hint});
  }
  const YamlNode& node() const {
    return node_;
  }

private:
  bool in_range(double value) const {
    return (field_.range.above_least ? value > field_.range.least
                                     : value >= field_.range.least)
           && (field_.range.below_most ? value < field_.range.most
                                       : value <= field_.range.most);
  }
  std::string got() const {
    return node_.is_sequence() ? print_yaml_flow(node_) : describe(node_);
  }
  /// Returns the default as a hint, or the command that explains the setting:
  /// 0, "" and the like usually mean "none", which users rarely look for.
  std::string default_hint() const {
    const auto text = field_.is_required ? "" : default_text(field_);
    static constexpr std::string_view empty_ones[]
      = {"", "0", "\"\"", "[]", "{}"};
    if (std::ranges::find(empty_ones, text) != std::end(empty_ones))
      return fmt::format("'troupe explain {}'", path_);
    return text;
  }
  /// Returns the nearest whole number in range as a hint: "64.0" and "1e3"
  /// mean whole numbers.
  std::string integer_hint() const {
    double value = 0;
    if (!node_.is_scalar() || !read_whole(node_.text, value)
        || std::abs(value) > 1e9)
      return default_hint();
    return number_text(std::clamp(std::round(value),
                                  std::max(field_.range.least, -1e9),
                                  std::min(field_.range.most, 1e9)));
  }

  const Field& field_;
  const YamlNode& node_;
  const std::string& path_;
};

void read_clip_ratio(const ValueReader& reader, ClipRatio& ratio) {
  const auto& node = reader.node();
  if (!node.is_sequence()) {
    ratio.low = ratio.high = reader.number(node);
    return;
  }
  if (node.items.size() != 2)
    reader.fail("[0.2, 0.28]");
  ratio = {reader.number(node.items[0]), reader.number(node.items[1])};
}

void read_pair(const ValueReader& reader, std::array<double, 2>& pair) {
  const auto& node = reader.node();
  if (!node.is_sequence() || node.items.size() != 2)
    reader.fail("[0.9, 0.95]");
  pair = {reader.number(node.items[0]), reader.number(node.items[1])};
}

void read_plan(const ValueReader& reader, const PlanSlot& plan) {
  const auto& node = reader.node();
  if (node.is_mapping()) {
    *plan.text = print_yaml(node);
    *plan.is_inline = true;
    return;
  }
  if (!node.is_scalar() || node.text.empty())
    reader.fail("auto");
  *plan.text = node.text;
  *plan.is_inline = false;
}

template <class T, class Read>
void read_map(const ValueReader& reader, std::map<std::string, T>& map,
              Read&& read) {
  if (!reader.node().is_mapping())
    reader.fail("{name: value}");
  map.clear();
  for (const auto& [key, value] : reader.node().entries)
    map[key] = read(value);
}

std::string range_text(const Field& field, const char* noun) {
  const bool low = std::isfinite(field.range.least);
  const bool high = std::isfinite(field.range.most);
  if (low && high && !field.range.above_least && !field.range.below_most)
    return fmt::format("{} from {} to {}", noun, field.range.least,
                       field.range.most);
  std::string text = noun;
  if (low)
    text += fmt::format(
      " {} {}", field.range.above_least ? ">" : ">=", field.range.least);
  if (high)
    text += fmt::format("{} {} {}", low ? " and" : "",
                        field.range.below_most ? "<" : "<=", field.range.most);
  return text;
}

/// Returns the double with the fewest digits that reads as this float: 0.1,
/// where a cast yields 0.10000000149.
double shortest(float value) {
  return std::stod(fmt::format("{}", value));
}

} // namespace

std::string expected_text(const Field& field) {
  if (const auto choices = choices_of(field); !choices.empty())
    return "one of " + join_or(choices);
  if (!field.shape.empty())
    return field.shape;
  Settings scratch;
  return std::visit(
    Overloaded{
      [](bool*) -> std::string { return "true or false"; },
      [&](int*) { return range_text(field, "a whole number"); },
      [&](std::uint64_t*) { return range_text(field, "a whole number"); },
      [&](float*) { return range_text(field, "a number"); },
      [&](double*) { return range_text(field, "a number"); },
      [](std::string*) -> std::string { return "text"; },
      [&](std::optional<int>*) {
        return range_text(field, "auto or a whole number");
      },
      [&](std::optional<double>*) {
        return range_text(field, "auto or a number");
      },
      [&](ClipRatio*) {
        return range_text(field, "a number") + " or [low, high]";
      },
      [&](std::array<double, 2>*) {
        return "two " + range_text(field, "numbers") + " in [ ]";
      },
      [&](std::vector<std::string>*) -> std::string {
        return field.shape.empty() ? "a list of texts" : field.shape;
      },
      [](std::map<std::string, std::string>*) -> std::string {
        return "a mapping of names to texts";
      },
      [](std::map<std::string, double>*) -> std::string {
        return "a mapping of names to numbers";
      },
      [](DataSettings*) -> std::string { return "a file or a list of them"; },
      [](PlanSlot) -> std::string {
        return "auto, a preset, a plan file or a mapping";
      }},
    field.slot(scratch, "actor"));
}

void read_value(const Field& field, Settings& settings, const std::string& role,
                const YamlNode& node, const std::string& path) {
  const ValueReader reader(field, node, path);
  std::visit(
    Overloaded{
      [&](bool* value) { *value = reader.truth(); },
      [&](int* value) { *value = reader.integer<int>(); },
      [&](std::uint64_t* value) { *value = reader.integer<std::uint64_t>(); },
      [&](float* value) { *value = reader.float_number(); },
      [&](double* value) { *value = reader.number(node); },
      [&](std::string* value) { *value = reader.text(); },
      [&](std::optional<int>* value) {
        if (node.is_scalar() && node.text == "auto")
          value->reset();
        else
          *value = reader.integer<int>();
      },
      [&](std::optional<double>* value) {
        if (node.is_scalar() && node.text == "auto")
          value->reset();
        else
          *value = reader.number(node);
      },
      [&](ClipRatio* value) { read_clip_ratio(reader, *value); },
      [&](std::array<double, 2>* value) { read_pair(reader, *value); },
      [&](std::vector<std::string>* value) { *value = reader.texts(); },
      [&](std::map<std::string, std::string>* value) {
        read_map(reader, *value, [&](const YamlNode& item) {
          if (!item.is_scalar())
            reader.fail("");
          return item.text;
        });
      },
      [&](std::map<std::string, double>* value) {
        read_map(reader, *value,
                 [&](const YamlNode& item) { return reader.number(item); });
      },
      [&](DataSettings* data) { read_train_files(node, path, *data); },
      [&](PlanSlot plan) { read_plan(reader, plan); }},
    field.slot(settings, role));
}

namespace {

/// Returns a mapping of secrets without their values.
YamlNode names_node(const std::map<std::string, std::string>& secrets) {
  YamlNode node;
  node.kind = YamlNode::Kind::mapping;
  for (const auto& [key, _] : secrets)
    node.entries.emplace_back(key, scalar_node(variable_named(key)));
  return node;
}

} // namespace

YamlNode value_node(const Field& field, const Settings& settings,
                    const std::string& role) {
  // slots are also for writing; only this function reads through the slot of a
  // const object
  auto& source = const_cast<Settings&>(settings);
  auto text_map = [](const auto& map, auto&& to_node) {
    YamlNode node;
    node.kind = YamlNode::Kind::mapping;
    for (const auto& [key, value] : map)
      node.entries.emplace_back(key, to_node(value));
    return node;
  };
  auto number_node
    = [](double value) { return scalar_node(number_text(value)); };
  auto text_node = [](const std::string& text) { return scalar_node(text); };
  return std::visit(
    Overloaded{
      [](bool* value) { return scalar_node(*value ? "true" : "false"); },
      [](int* value) { return scalar_node(std::to_string(*value)); },
      [](std::uint64_t* value) { return scalar_node(std::to_string(*value)); },
      [&](float* value) { return number_node(shortest(*value)); },
      [&](double* value) { return number_node(*value); },
      [&](std::string* value) { return text_node(*value); },
      [](std::optional<int>* value) {
        return scalar_node(*value ? std::to_string(**value) : "auto");
      },
      [&](std::optional<double>* value) {
        return *value ? number_node(**value) : scalar_node("auto");
      },
      [&](ClipRatio* value) {
        if (value->low == value->high)
          return number_node(value->low);
        return list_node({number_node(value->low), number_node(value->high)});
      },
      [&](std::array<double, 2>* value) {
        return list_node({number_node((*value)[0]), number_node((*value)[1])});
      },
      [&](std::vector<std::string>* value) {
        std::vector<YamlNode> items;
        std::ranges::transform(*value, std::back_inserter(items), text_node);
        return list_node(std::move(items));
      },
      [&](std::map<std::string, std::string>* value) {
        return field.is_secret ? names_node(*value)
                               : text_map(*value, text_node);
      },
      [&](std::map<std::string, double>* value) {
        return text_map(*value, number_node);
      },
      [](DataSettings* data) { return train_files_node(*data); },
      [&](PlanSlot plan) {
        return *plan.is_inline ? parse_yaml(*plan.text, "plan")
                               : scalar_node(*plan.text);
      }},
    field.slot(source, role));
}

std::string value_text(const Field& field, const Settings& settings,
                       const std::string& role) {
  return print_yaml_flow(value_node(field, settings, role));
}

std::string default_text(const Field& field) {
  Settings defaults;
  return value_text(field, defaults, "ROLE");
}

} // namespace troupe
