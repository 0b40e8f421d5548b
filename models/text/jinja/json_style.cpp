#include "models/text/jinja/json_style.hpp"

#include <algorithm>

namespace troupe::models::jinja {

namespace {

std::string json_indent(const Value& indent) {
  if (const auto* text = indent.text())
    return *text;
  const auto width = std::clamp<std::int64_t>(indent.integer("tojson"), 0, 64);
  return std::string(static_cast<std::size_t>(width), ' ');
}

} // namespace

JsonStyle json_style(const Arguments& arguments) {
  for (const auto& [name, given] : arguments.named)
    if (name != "ensure_ascii" && name != "indent" && name != "separators"
        && name != "sort_keys")
      throw TemplateError("tojson has no argument '" + name + "'");
  const auto asked = [&](std::size_t index, std::string_view name) {
    const Value* flag = arguments.find(index, name);
    return flag != nullptr && flag->truth();
  };
  JsonStyle style;
  style.ascii = asked(0, "ensure_ascii");
  style.sorted = asked(3, "sort_keys");
  if (const Value* indent = arguments.find(1, "indent");
      indent != nullptr && !indent->none()) {
    style.indent = json_indent(*indent);
    style.between = ",";
  }
  if (const Value* between = arguments.find(2, "separators");
      between != nullptr && !between->none()) {
    const List both = iterate(*between);
    if (both.size() != 2)
      throw TemplateError("tojson needs two separators, got "
                          + std::to_string(both.size()));
    style.between = both[0].need_text("tojson");
    style.behind_key = both[1].need_text("tojson");
  }
  return style;
}

} // namespace troupe::models::jinja
