#include "models/text/jinja/format.hpp"

#include "models/text/jinja/format_spec.hpp"
#include "models/text/jinja/steps.hpp"
#include "models/text/jinja/text.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace troupe::models::jinja {

namespace {

constexpr int format_depth_limit = 2; // a field in a specification, no deeper

/// The number that the whole text is, if it is one.
std::optional<std::int64_t> index_in(std::string_view text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (text.empty() || text.front() == '-' || read.ec != std::errc()
      || read.ptr != end)
    return std::nullopt;
  return number;
}

/// A field in parts: name!conversion:specification.
struct Field {
  std::string_view name;
  char conversion = 0;
  std::string_view spec;
};

Field field_of(std::string_view text) {
  std::size_t at = 0;
  for (bool inside = false; at < text.size(); ++at) {
    inside = text[at] == '[' || (inside && text[at] != ']');
    if (!inside && (text[at] == '!' || text[at] == ':'))
      break;
  }
  Field field{text.substr(0, at), 0, {}};
  text.remove_prefix(at);
  if (text.starts_with('!')) {
    if (text.size() < 2 || (text.size() > 2 && text[2] != ':'))
      throw TemplateError("format: expected ':' after the conversion");
    field.conversion = text[1];
    text.remove_prefix(2);
  }
  field.spec = text.empty() ? text : text.substr(1);
  return field;
}

class TextFormatter {
public:
  explicit TextFormatter(const Arguments& arguments) : given_(arguments) {}

  std::string run(std::string_view pattern, int depth) {
    if (depth > format_depth_limit)
      throw TemplateError("format: fields are nested too deeply");
    std::string out;
    for (std::size_t at = 0; at < pattern.size();) {
      const char c = pattern[at];
      if (c != '{' && c != '}') {
        const auto end
          = std::min(pattern.find_first_of("{}", at), pattern.size());
        append(out, pattern.substr(at, end - at));
        at = end;
      } else if (pattern.substr(at + 1).starts_with(c) && depth == 1) {
        append(out, pattern.substr(at, 1));
        at += 2;
      } else {
        const std::string_view inside = field_at(pattern, at);
        append(out, field(inside, depth));
        at += inside.size() + 2;
      }
    }
    return out;
  }

private:
  /// Returns the text between the braces that open at `at`.
  static std::string_view field_at(std::string_view pattern, std::size_t at) {
    int open = 0;
    for (std::size_t i = at; i < pattern.size(); ++i) {
      open += pattern[i] == '{' ? 1 : pattern[i] == '}' ? -1 : 0;
      if (open <= 0)
        return open < 0 ? throw TemplateError("format: a single '}'")
                        : pattern.substr(at + 1, i - at - 1);
    }
    throw TemplateError("format: a '{' that is not closed");
  }

  std::string field(std::string_view text, int depth) {
    count_steps();
    const Field field = field_of(text);
    Value value = named(field.name);
    if (field.conversion == 'r')
      value = value.repr();
    else if (field.conversion == 's')
      value = value.print();
    else if (field.conversion != 0)
      throw TemplateError(std::string("unsupported construct: the conversion "
                                      "'!")
                          + field.conversion + "' of a format");
    const std::string spec
      = field.spec.empty() ? "" : run(field.spec, depth + 1);
    return spec.empty() ? value.print()
                        : formatted(value, parse_format_spec(spec));
  }

  /// 0.name[key] and the like.
  Value named(std::string_view path) {
    auto end = std::min(path.find_first_of(".["), path.size());
    Value value = argument(path.substr(0, end));
    path.remove_prefix(end);
    while (!path.empty()) {
      const bool entry = path.front() == '[';
      path.remove_prefix(1);
      end = std::min(path.find_first_of(entry ? "]" : ".["), path.size());
      const std::string_view name = path.substr(0, end);
      if (name.empty() || (entry && end == path.size()))
        throw TemplateError("format: an empty or open part of a field's name");
      const auto index = index_in(name);
      value = !entry  ? attribute(value, std::string(name))
              : index ? item(value, *index)
                      : item(value, std::string(name));
      path.remove_prefix(end + (entry ? 1 : 0));
      if (entry && !path.empty() && path.front() != '.' && path.front() != '[')
        throw TemplateError("format: only '.' or '[' may follow ']'");
    }
    return value;
  }

  Value argument(std::string_view name) {
    auto index = index_in(name);
    if (name.empty() || index) {
      const bool counted = name.empty();
      if (counted_.value_or(counted) != counted)
        throw TemplateError("format: '{}' beside '{0}'");
      counted_ = counted;
      const auto at = static_cast<std::size_t>(index ? *index : next_++);
      if (at >= given_.positional.size())
        throw TemplateError("format: no argument " + std::to_string(at));
      return given_.positional[at];
    }
    const Value* found = find(given_.named, name);
    if (found == nullptr)
      throw TemplateError("format: no argument '" + std::string(name) + "'");
    return *found;
  }

  const Arguments& given_;
  std::int64_t next_ = 0;
  std::optional<bool> counted_; ///< whether fields are {}, once one was seen
};

} // namespace

std::string format_text(const std::string& pattern,
                        const Arguments& arguments) {
  return TextFormatter(arguments).run(pattern, 1);
}

} // namespace troupe::models::jinja
